//! Programs in Python with drivers of their own run together with Rust clients.

use std::{
    future::IntoFuture,
    path::{Path, PathBuf},
    time::Duration,
};

use e2e::{depositor::Depositor, project::root};
use fenced_store::FencedStore;
use lock_core::{LockManager, Ttl};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::Pool;
use tokio::time::timeout;

use super::{Database, number, until_waiting};

const PATIENCE: Duration = Duration::from_secs(30);

/// A query for the balance of the account.
pub(crate) const BALANCE: &str = "SELECT balance FROM account WHERE id = 1";

/// The path of a program in the documentation.
pub(crate) fn example(name: &str) -> PathBuf {
    root().join("docs/examples").join(name)
}

/// A database with the tables of the store, and an account that has 100.
pub(crate) struct World<D: Database> {
    pub(crate) database: D,
    pub(crate) pool: Pool<D::Db>,
    pub(crate) locks: LockManager,
}

impl<D: Database> World<D> {
    pub(crate) async fn new() -> Self {
        let database = D::fresh().await;
        let pool = database.pool().await;
        FencedStore::new(pool.clone()).migrate().await.unwrap();
        let mut session = pool.acquire().await.unwrap();
        let account = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL);
            INSERT INTO account VALUES (1, 100)";
        D::execute(&mut session, account).await.unwrap();
        drop(session);
        Self {
            locks: palisade::connect(database.url()).await.unwrap(),
            pool,
            database,
        }
    }

    pub(crate) async fn balance(&self) -> i64 {
        number::<D>(&self.pool, BALANCE).await
    }

    async fn python(&self, program: &Path) -> Depositor {
        Depositor::start_in(&D::python().await, program, &self.database.plain(), "10")
    }

    async fn until_waiting(&self, waiters: i64) {
        until_waiting::<D>(&self.pool, "account:1", waiters).await;
    }
}

pub(crate) async fn python_and_rust_wait_in_one_queue<D: Database>() {
    let world = World::<D>::new().await;
    let acquire = || world.locks.acquire("account:1").ttl(Ttl::secs(60));
    let first = acquire().await.unwrap();
    let mut python = world.python(&example(D::DEPOSITOR)).await;
    world.until_waiting(1).await;
    let last = tokio::spawn(timeout(PATIENCE, acquire().into_future()));
    world.until_waiting(2).await;

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

/// Python reads 100, and is stopped until its lease has run out. During that time 50 are deposited.
/// Then Python goes on as if nothing had happened, and writes 110. Returns the answer of the
/// program, and the balance.
async fn stopped_past_its_lease<D: Database>(program: &Path) -> (Value, i64) {
    let world = World::<D>::new().await;
    let mut python = world.python(program).await;
    assert_eq!(python.says().await["read"], 100);
    python.signal(Signal::STOP);

    let store = FencedStore::new(world.pool.clone());
    let acquire = world.locks.acquire("account:1").ttl(Ttl::secs(60));
    let guard = timeout(PATIENCE, acquire.into_future()).await;
    let guard = guard.expect("its lease has not run out").unwrap();
    store.claim(guard.sequencer()).await.unwrap();
    let mut tx = store.begin(guard.sequencer()).await.unwrap();
    let deposit = "UPDATE account SET balance = balance + 50 WHERE id = 1";
    D::execute(&mut tx, deposit).await.unwrap();
    tx.commit().await.unwrap();

    python.signal(Signal::CONT);
    python.go_on().await;
    (python.says().await, world.balance().await)
}

pub(crate) async fn python_that_was_stopped_past_its_lease_is_refused<D: Database>() {
    let fenced = example(D::DEPOSITOR);
    let text = std::fs::read_to_string(&fenced).unwrap();
    let [fence, nothing] = D::FENCE;
    assert_eq!(text.matches(fence).count(), 1);
    let folder = tempfile::tempdir().unwrap();
    let unfenced = folder.path().join("unfenced_deposit.py");
    std::fs::write(&unfenced, text.replace(fence, nothing)).unwrap();

    // The control: without the fence the deposit of 50 is lost.
    let (said, balance) = stopped_past_its_lease::<D>(&unfenced).await;
    assert_eq!((said, balance), (json!({ "written": 110 }), 110));
    let (said, balance) = stopped_past_its_lease::<D>(&fenced).await;
    assert!(D::is_refusal(&said), "{said}");
    assert_eq!(balance, 150);
}
