//! The functions as an interface: psql, and Python with its own driver, beside Rust clients.

use std::{future::IntoFuture, path::Path, time::Duration};

use e2e::{depositor::Depositor, project::root, servers::until};
use fenced_jobs::{JobSlots, Standing};
use fenced_store::PgFencedStore;
use lock_core::Ttl;
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::{process::Command, time::timeout};

use crate::world::{count, database, manager};

const PATIENCE: Duration = Duration::from_secs(30);
const BALANCE: &str = "select balance from account where id = 1";
const WAITING: &str = "select count(*) from fenced.waiter";

/// The URL without the parameters of our own driver.
fn plain(url: &str) -> &str {
    url.split('?').next().unwrap()
}

fn example(name: &str) -> std::path::PathBuf {
    root().join("docs/examples").join(name)
}

async fn bank(url: &str) -> PgPool {
    let pool = PgPool::connect(url).await.unwrap();
    let account = "create table account (id int primary key, balance bigint not null);
        insert into account values (1, 100)";
    sqlx::raw_sql(account).execute(&pool).await.unwrap();
    pool
}

#[tokio::test]
async fn psql_alone_makes_a_fenced_deposit() {
    let database = database().await;
    let pool = bank(database.url()).await;
    let psql = Command::new("psql")
        .args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file"])
        .arg(example("fenced_deposit.sql"))
        .arg(plain(database.url()))
        .output();
    let output = psql.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(count(&pool, BALANCE).await, 110);
    let said = String::from_utf8(output.stdout).unwrap();
    for outcome in ["granted", "renewed", "released"] {
        assert!(said.contains(outcome), "{outcome}: {said}");
    }
}

/// A done one, a second time; and a write without the fence.
#[tokio::test]
async fn psql_alone_runs_a_job_once_per_slot() {
    let database = database().await;
    let pool = bank(database.url()).await;
    let run = async |slot: &str| {
        let psql = Command::new("psql")
            .args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--set"])
            .arg(format!("slot={slot}"))
            .arg("--file")
            .arg(example("run_once.sql"))
            .arg(plain(database.url()))
            .output();
        let output = psql.await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (slot, outcome, balance) in [
        ("2026-11-27T02:00:00Z", "ran", 110),
        ("2026-11-27T02:00:00Z", "done", 110),
        ("by hand", "ran", 120),
    ] {
        let slot = slot.replace(' ', "-");
        let said = run(&slot).await;
        assert!(said.lines().any(|line| line == outcome), "{slot}: {said}");
        assert_eq!(count(&pool, BALANCE).await, balance);
    }
    let state = PgFencedStore::new(pool.clone())
        .job_slot("interest", "by-hand")
        .await;
    assert!(matches!(state.unwrap().standing, Standing::Done { .. }));

    for unfenced in [
        "select fenced.run_job('interest', 'x')",
        "select fenced.save_job('interest', 'x', 1, '1')",
        "select fenced.fail_job('interest', 'x', 'error', 0)",
        "select fenced.retry_job('interest', 'x')",
        "select fenced.forget_job('interest', 'by-hand')",
        "select fenced.forget_jobs_below('interest', '2027-01-01T00:00:00Z')",
    ] {
        let refused = sqlx::query(unfenced).execute(&pool).await.unwrap_err();
        let code = refused.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("FN010"), "{unfenced}: {refused}");
    }
}

#[tokio::test]
async fn python_and_rust_wait_in_one_queue() {
    let database = database().await;
    let pool = bank(database.url()).await;
    let locks = manager(database.url()).await;
    let first = locks.acquire("account:1").ttl(Ttl::secs(60)).await.unwrap();
    let program = example("fenced_deposit.py");
    let mut python = Depositor::start(&program, plain(database.url()), "10");
    until("Python waits", async || count(&pool, WAITING).await == 1).await;
    let waiter = locks.clone();
    let last = async move { waiter.acquire("account:1").ttl(Ttl::secs(60)).await };
    let last = tokio::spawn(timeout(PATIENCE, last));
    until("two wait", async || count(&pool, WAITING).await == 2).await;

    let token = first.token();
    first.release().await.unwrap();
    let read = python.says().await;
    let python_token = read["token"].as_u64().unwrap();
    assert!(python_token > token.get(), "{read}");
    assert!(!last.is_finished(), "it was before Python");
    python.go_on().await;
    assert_eq!(python.says().await, json!({ "written": 110 }));
    let last = last.await.unwrap().expect("it is not served").unwrap();
    assert!(last.token().get() > python_token);
    assert!(python.ends_well().await);
}

/// Python reads 100, and is stopped until its lease has run out; meanwhile 50 are deposited. Then
/// it goes on as if nothing had happened, and writes 110. Returns its answer, and the balance.
async fn stopped_past_its_lease(program: &Path) -> (Value, i64) {
    let database = database().await;
    let pool = bank(database.url()).await;
    let mut python = Depositor::start(program, plain(database.url()), "10");
    assert_eq!(python.says().await["read"], 100);
    python.signal(Signal::STOP);

    let locks = manager(database.url()).await;
    let store = PgFencedStore::new(pool.clone());
    let acquire = locks.acquire("account:1").ttl(Ttl::secs(60));
    let guard = timeout(PATIENCE, acquire.into_future()).await;
    let guard = guard.expect("its lease has not run out").unwrap();
    store.claim(guard.sequencer()).await.unwrap();
    let mut tx = store.begin(guard.sequencer()).await.unwrap();
    let deposit = "update account set balance = balance + 50 where id = 1";
    sqlx::raw_sql(deposit).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();

    python.signal(Signal::CONT);
    python.go_on().await;
    let said = python.says().await;
    (said, count(&pool, BALANCE).await)
}

#[tokio::test]
async fn python_that_was_stopped_past_its_lease_is_refused() {
    let fenced = example("fenced_deposit.py");
    let text = std::fs::read_to_string(&fenced).unwrap();
    let fence = "SELECT fenced.begin_fenced(%s, %s, %s, %s)";
    assert_eq!(text.matches(fence).count(), 1);
    let folder = tempfile::tempdir().unwrap();
    let unfenced = folder.path().join("unfenced_deposit.py");
    std::fs::write(&unfenced, text.replace(fence, "SELECT %s, %s, %s, %s")).unwrap();

    // The control: without the fence the deposit of 50 is lost.
    let (said, balance) = stopped_past_its_lease(&unfenced).await;
    assert_eq!((said, balance), (json!({ "written": 110 }), 110));
    let (said, balance) = stopped_past_its_lease(&fenced).await;
    assert_eq!((said, balance), (json!({ "refused": "FN001" }), 150));
}
