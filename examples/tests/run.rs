//! Every program is run.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio},
};

use e2e::servers::{PostgresDatabase, postgres_database, redis};
use examples::bank::{Update, bank_client::BankClient};
use palisade::{
    http::client::{Credential, Sender, WriteError},
    store::PgFencedStore,
};
use reqwest::{Method, header::CONTENT_TYPE};
use sqlx::PgPool;

const FIRST: &str = env!("CARGO_BIN_EXE_first");
const FOLLOWER: &str = env!("CARGO_BIN_EXE_follower");
const PAUSE_TEST: &str = env!("CARGO_BIN_EXE_pause_test");
const WEB_SERVICE: &str = env!("CARGO_BIN_EXE_web_service");
const RUN_ONCE: &str = env!("CARGO_BIN_EXE_run_once");
const NIGHTLY: &str = env!("CARGO_BIN_EXE_nightly");
const FROM_REDIS_LOCK: &str = env!("CARGO_BIN_EXE_from_redis_lock");
const LEADER: &str = env!("CARGO_BIN_EXE_leader");
const APALIS_WORKER: &str = env!("CARGO_BIN_EXE_apalis_worker");
const DIESEL_ASYNC: &str = env!("CARGO_BIN_EXE_diesel_async");
const SEA_ORM_ENTITIES: &str = env!("CARGO_BIN_EXE_sea_orm_entities");
const TONIC_SERVICE: &str = env!("CARGO_BIN_EXE_tonic_service");

/// A program that ends with the test.
struct Program {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        let mut child = command
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, output }
    }

    fn says(&mut self) -> String {
        self.output.next().unwrap().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _over = self.child.kill().is_ok() && self.child.wait().is_ok();
    }
}

#[tokio::test]
async fn a_stale_write_is_refused() {
    let database = postgres_database().await;
    let mut first = Program::start(FIRST, &[database.url()]);
    assert!(
        first
            .says()
            .starts_with("the next holder has written, token ")
    );
    assert!(
        first
            .says()
            .starts_with("the slow one is refused: stale fencing token ")
    );
    assert!(first.child.wait().unwrap().success());
}

/// Catches: a README whose program nobody has run.
#[test]
fn the_first_program_is_the_one_of_the_readme() {
    let program = include_str!("../src/bin/first.rs");
    let (_, program) = program.split_once("use std").unwrap();
    assert!(include_str!("../../README.md").contains(program));
}

#[test]
fn a_pause_test_passes() {
    let mut test = Program::start(PAUSE_TEST, &[]);
    assert_eq!(test.says(), "no pause loses money");
}

#[tokio::test]
async fn a_service_takes_the_write_of_the_holder_alone() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let accounts = "CREATE TABLE accounts (id BIGINT, balance BIGINT); \
                    INSERT INTO accounts VALUES (42, 100)";
    sqlx::raw_sql(accounts).execute(&pool).await.unwrap();
    let mut service = Program::start(WEB_SERVICE, &[database.url()]);
    let account = format!("{}/accounts/42", service.says());
    let clients = palisade::one_database(PgFencedStore::new(pool))
        .await
        .unwrap();
    let slow = clients.acquire("account:42").await.unwrap();
    let late = Credential::new(slow.sequencer()).unwrap();
    slow.release().await.unwrap();
    let next = clients.acquire("account:42").await.unwrap();
    let sender = Sender::new(reqwest::Client::builder().no_proxy()).unwrap();
    let write = |balance: &'static str| {
        let write = sender.request(Method::PUT, &account);
        write.header(CONTENT_TYPE, "application/json").body(balance)
    };
    let credential = Credential::new(next.sequencer()).unwrap();
    sender.send(write("150"), &credential).await.unwrap();
    let refused = sender.send(write("110"), &late).await;
    assert!(
        matches!(refused, Err(WriteError::Refused(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_plain_lock_becomes_a_fence_in_three_steps() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let accounts = "CREATE TABLE accounts (id BIGINT, balance BIGINT); \
                    INSERT INTO accounts VALUES (42, 100)";
    sqlx::raw_sql(accounts).execute(&pool).await.unwrap();
    let redis = redis().await;
    for (step, said) in [
        ("observe", "stored, observed"),
        ("warn", "stored, observed"),
        ("enforce", "stored, fenced"),
    ] {
        let arguments = [redis.url(), database.url(), step];
        assert_eq!(Program::start(FROM_REDIS_LOCK, &arguments).says(), said);
    }
    let balance = sqlx::query_scalar("SELECT balance FROM accounts").fetch_one(&pool);
    let balance: i64 = balance.await.unwrap();
    assert_eq!(balance, 130);
}

#[tokio::test]
async fn a_job_runs_once() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    sqlx::query("CREATE TABLE report (day TEXT)")
        .execute(&pool)
        .await
        .unwrap();
    let run = |slot| Program::start(RUN_ONCE, &[database.url(), slot]).says();
    assert!(run("2026-11-27").starts_with("ran under token "));
    assert!(run("2026-11-27").starts_with("was done under token "));
    assert!(run("2026-11-28").starts_with("ran under token "));
    let reports = sqlx::query_scalar("SELECT count(*) FROM report").fetch_one(&pool);
    let reports: i64 = reports.await.unwrap();
    assert_eq!(reports, 2);
}

#[tokio::test]
async fn a_schedule_begins() {
    let database = postgres_database().await;
    let said = Program::start(NIGHTLY, &[database.url()]).says();
    assert!(said.starts_with("done: []; next in "), "{said}");
}

#[tokio::test]
async fn the_next_leader_takes_over() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let orders = "CREATE TABLE orders (sent TIMESTAMPTZ); INSERT INTO orders VALUES (NULL)";
    sqlx::raw_sql(orders).execute(&pool).await.unwrap();
    let mut one = Program::start(LEADER, &[database.url(), "one"]);
    let first = one.says();
    assert!(first.starts_with("leading, term "), "{first}");
    let mut follower = Program::start(FOLLOWER, &[database.url()]);
    assert_eq!(follower.says(), "one leads");
    let mut two = Program::start(LEADER, &[database.url(), "two"]);
    drop(one);
    let second = two.says();
    assert!(
        second.starts_with("leading, term ") && second > first,
        "{second}"
    );
    let mut seen = follower.says();
    if seen == "nobody leads" {
        seen = follower.says();
    }
    assert_eq!(seen, "two leads");
    let sent = async || {
        let sent = sqlx::query_scalar("SELECT count(sent) FROM orders").fetch_one(&pool);
        let sent: i64 = sent.await.unwrap();
        sent == 1
    };
    e2e::servers::until("the order is sent", sent).await;
}

/// Account 42 with 100.
async fn bank() -> (PostgresDatabase, PgPool) {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let accounts = "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL); \
                    INSERT INTO accounts VALUES (42, 100)";
    sqlx::raw_sql(accounts).execute(&pool).await.unwrap();
    (database, pool)
}

async fn balance(pool: &PgPool) -> i64 {
    let balance = sqlx::query_scalar("SELECT balance FROM accounts").fetch_one(pool);
    balance.await.unwrap()
}

/// Catches: a fence that the statements of another library are not behind.
#[tokio::test]
async fn other_libraries_write_behind_the_fence() {
    for program in [SEA_ORM_ENTITIES, DIESEL_ASYNC] {
        let (database, pool) = bank().await;
        // Settings of sqlx are after the question mark.
        let url = database.url().split('?').next().unwrap();
        let mut writer = Program::start(program, &[url]);
        assert_eq!(writer.says(), "balance 150");
        let refused = writer.says();
        assert!(refused.starts_with("refused: "), "{refused}");
        assert!(refused.contains("stale fencing token"), "{refused}");
        assert_eq!(balance(&pool).await, 150);
    }
}

#[tokio::test]
async fn a_task_that_a_queue_gives_out_twice_is_done_once() {
    let (database, pool) = bank().await;
    let mut worker = Program::start(APALIS_WORKER, &[database.url()]);
    // In any order.
    let said = [worker.says(), worker.says(), worker.says()];
    for (start, times) in [
        ("2026-11-26 ran under ", 1),
        ("2026-11-27 ran under ", 1),
        ("2026-11-27 was done under ", 1),
    ] {
        let found = said.iter().filter(|line| line.starts_with(start));
        assert_eq!(found.count(), times, "{said:?}");
    }
    assert_eq!(balance(&pool).await, 102);
}

#[tokio::test]
async fn a_call_of_a_stale_holder_fails_its_precondition() {
    let (database, pool) = bank().await;
    let mut service = Program::start(TONIC_SERVICE, &[database.url()]);
    let mut client = BankClient::connect(service.says()).await.unwrap();
    let locks = palisade::one_database(PgFencedStore::new(pool.clone()));
    let locks = locks.await.unwrap();
    let slow = locks.acquire("account:42").await.unwrap();
    let late = Credential::new(slow.sequencer()).unwrap();
    slow.release().await.unwrap();
    let next = locks.acquire("account:42").await.unwrap();
    let credential = Credential::new(next.sequencer()).unwrap();

    let mut update = async |balance, credential: Option<&Credential>| {
        let mut request = tonic::Request::new(Update { id: 42, balance });
        if let Some(credential) = credential {
            let token = credential.expose().parse().unwrap();
            request.metadata_mut().insert("fencing-token", token);
        }
        let answer = client.update(request).await;
        answer
            .map(|answer| answer.into_inner().balance)
            .map_err(|status| status.code())
    };
    assert_eq!(update(150, Some(&credential)).await, Ok(150));
    let failed = Err(tonic::Code::FailedPrecondition);
    assert_eq!(update(110, Some(&late)).await, failed);
    assert_eq!(update(110, None).await, failed);
    assert_eq!(balance(&pool).await, 150);
}
