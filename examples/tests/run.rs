//! Runs every program.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod bank;

use e2e::{
    process::Process,
    servers::{postgres_database, redis},
};
use examples::bank::{Update, bank_client::BankClient};
use palisade::{
    http::client::{Credential, Sender, WriteError},
    store::PgFencedStore,
};
use reqwest::{Method, header::CONTENT_TYPE};
use sqlx::PgPool;

use crate::bank::{balance, bank, said};

#[tokio::test]
async fn a_stale_write_is_refused() {
    let database = postgres_database().await;
    let mut first = Process::spawn("first", [database.url()]);
    let written = said(&mut first).await;
    assert!(
        written.starts_with("the next holder has written, token "),
        "{written}"
    );
    let refused = said(&mut first).await;
    assert!(
        refused.starts_with("the slow one is refused: stale fencing token "),
        "{refused}"
    );
    assert!(first.finish().await.success());
}

/// Catches: a README whose program was never run.
#[test]
fn the_first_program_is_the_one_of_the_readme() {
    let program = include_str!("../src/bin/first.rs");
    let (_, program) = program.split_once("use std").unwrap();
    assert!(include_str!("../../README.md").contains(program));
}

#[tokio::test]
async fn a_pause_test_passes() {
    let mut test = Process::spawn("pause_test", [""; 0]);
    assert_eq!(said(&mut test).await, "no pause loses money");
}

#[tokio::test]
async fn a_service_takes_the_write_of_the_holder_alone() {
    let (database, pool) = bank().await;
    let mut service = Process::spawn("web_service", [database.url()]);
    let account = format!("{}/accounts/42", said(&mut service).await);
    let clients = palisade::open(PgFencedStore::new(pool)).await.unwrap();
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
    let (database, pool) = bank().await;
    let redis = redis().await;
    for (step, expected) in [
        ("observe", "stored, observed"),
        ("warn", "stored, observed"),
        ("enforce", "stored, fenced"),
    ] {
        let arguments = [redis.url(), database.url(), step];
        let mut program = Process::spawn("from_redis_lock", arguments);
        assert_eq!(said(&mut program).await, expected);
    }
    assert_eq!(balance(&pool).await, 130);
}

#[tokio::test]
async fn a_job_runs_once() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    sqlx::query("CREATE TABLE report (day TEXT)")
        .execute(&pool)
        .await
        .unwrap();
    for (slot, expected) in [
        ("2026-11-27", "ran under token "),
        ("2026-11-27", "was done under token "),
        ("2026-11-28", "ran under token "),
    ] {
        let mut run = Process::spawn("run_once", [database.url(), slot]);
        let said = said(&mut run).await;
        assert!(said.starts_with(expected), "{slot}: {said}");
    }
    let reports = sqlx::query_scalar("SELECT count(*) FROM report").fetch_one(&pool);
    let reports: i64 = reports.await.unwrap();
    assert_eq!(reports, 2);
}

#[tokio::test]
async fn a_schedule_begins() {
    let database = postgres_database().await;
    let mut nightly = Process::spawn("nightly", [database.url()]);
    let said = said(&mut nightly).await;
    assert!(said.starts_with("done: []; next in "), "{said}");
}

#[tokio::test]
async fn the_next_leader_takes_over() {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let orders = "CREATE TABLE orders (sent TIMESTAMPTZ); INSERT INTO orders VALUES (NULL)";
    sqlx::raw_sql(orders).execute(&pool).await.unwrap();
    let mut one = Process::spawn("leader", [database.url(), "one"]);
    let first = said(&mut one).await;
    assert!(first.starts_with("leading, term "), "{first}");
    let mut follower = Process::spawn("follower", [database.url()]);
    assert_eq!(said(&mut follower).await, "one leads");
    let mut two = Process::spawn("leader", [database.url(), "two"]);
    one.kill().await;
    let second = said(&mut two).await;
    assert!(
        second.starts_with("leading, term ") && second > first,
        "{second}"
    );
    let mut seen = said(&mut follower).await;
    if seen == "no leader" {
        seen = said(&mut follower).await;
    }
    assert_eq!(seen, "two leads");
    let sent = async || {
        let sent = sqlx::query_scalar("SELECT count(sent) FROM orders").fetch_one(&pool);
        let sent: i64 = sent.await.unwrap();
        sent == 1
    };
    e2e::servers::until("the order is sent", sent).await;
}

#[tokio::test]
async fn a_call_of_a_stale_holder_fails_its_precondition() {
    let (database, pool) = bank().await;
    let mut service = Process::spawn("tonic_service", [database.url()]);
    let mut client = BankClient::connect(said(&mut service).await).await.unwrap();
    let locks = palisade::open(PgFencedStore::new(pool.clone()));
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
