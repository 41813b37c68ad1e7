//! The tables as an interface: the shell of SQLite, and Python, beside Rust clients.

use std::{future::IntoFuture, path::Path, process::Stdio, time::Duration};

use e2e::{depositor::Depositor, observer::until, project::root};
use fenced_store::SqliteFencedStore;
use lock_core::{LockManager, Ttl};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::SqlitePool;
use tokio::{process::Command, time::timeout};

use crate::world::{Folder, WAITERS, count, manager};

const PATIENCE: Duration = Duration::from_secs(30);
const BALANCE: &str = "SELECT balance FROM account WHERE id = 1";

struct World {
    folder: Folder,
    pool: SqlitePool,
    locks: LockManager,
}

impl World {
    async fn new() -> Self {
        let folder = Folder::new();
        let pool = folder.pool().await;
        SqliteFencedStore::new(pool.clone())
            .migrate()
            .await
            .unwrap();
        let account = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
            INSERT INTO account VALUES (1, 100)";
        sqlx::raw_sql(account).execute(&pool).await.unwrap();
        Self {
            locks: manager(&folder).await,
            pool,
            folder,
        }
    }

    fn python(&self, program: &Path) -> Depositor {
        Depositor::start(program, self.folder.file().to_str().unwrap(), "10")
    }

    async fn shell(&self) -> String {
        let example = std::fs::File::open(example("fenced_deposit_sqlite.sql")).unwrap();
        let shell = Command::new("sqlite3")
            .args(["-batch", "-bail"])
            .arg(self.folder.file())
            .stdin(Stdio::from(example))
            .output();
        let output = shell.await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

fn example(name: &str) -> std::path::PathBuf {
    root().join("docs/examples").join(name)
}

#[tokio::test]
async fn the_shell_alone_makes_a_fenced_deposit() {
    let world = World::new().await;
    let first: u64 = world.shell().await.parse().unwrap();
    assert_eq!(count(&world.pool, BALANCE).await, 110);
    let second: u64 = world.shell().await.parse().unwrap();
    assert!(second > first);
    assert_eq!(count(&world.pool, BALANCE).await, 120);
    let held = world.locks.acquire("account:1").ttl(Ttl::secs(60)).await;
    let held = held.unwrap();
    assert!(held.token().get() > second);
    assert_eq!(world.shell().await, "", "it is held");
    assert_eq!(count(&world.pool, BALANCE).await, 120);
}

#[tokio::test]
async fn python_and_rust_wait_in_one_queue() {
    let world = World::new().await;
    let acquire = || world.locks.acquire("account:1").ttl(Ttl::secs(60));
    let first = acquire().await.unwrap();
    let mut python = world.python(&example("fenced_deposit_sqlite.py"));
    let waiting = async |number| count(&world.pool, WAITERS).await == number;
    until("Python waits", async || waiting(1).await).await;
    let last = tokio::spawn(timeout(PATIENCE, acquire().into_future()));
    until("two wait", async || waiting(2).await).await;

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
    let world = World::new().await;
    let mut python = world.python(program);
    assert_eq!(python.says().await["read"], 100);
    python.signal(Signal::STOP);

    let store = SqliteFencedStore::new(world.pool.clone());
    let acquire = world.locks.acquire("account:1").ttl(Ttl::secs(60));
    let guard = timeout(PATIENCE, acquire.into_future()).await;
    let guard = guard.expect("its lease has not run out").unwrap();
    store.claim(guard.sequencer()).await.unwrap();
    let mut tx = store.begin(guard.sequencer()).await.unwrap();
    let deposit = "UPDATE account SET balance = balance + 50 WHERE id = 1";
    sqlx::query(deposit).execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();

    python.signal(Signal::CONT);
    python.go_on().await;
    let said = python.says().await;
    (said, count(&world.pool, BALANCE).await)
}

#[tokio::test]
async fn python_that_was_stopped_past_its_lease_is_refused() {
    let fenced = example("fenced_deposit_sqlite.py");
    let text = std::fs::read_to_string(&fenced).unwrap();
    let fence = "        check(file, me, token)\n";
    assert_eq!(text.matches(fence).count(), 1);
    let folder = Folder::new();
    let unfenced = folder.file().with_extension("py");
    std::fs::write(&unfenced, text.replace(fence, "")).unwrap();

    // The control: without the fence the deposit of 50 is lost.
    let (said, balance) = stopped_past_its_lease(&unfenced).await;
    assert_eq!((said, balance), (json!({ "written": 110 }), 110));
    let (said, balance) = stopped_past_its_lease(&fenced).await;
    let refused = json!({ "refused": "a newer holder has claimed" });
    assert_eq!((said, balance), (refused, 150));
}
