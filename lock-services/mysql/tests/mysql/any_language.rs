//! The procedures as an interface: the client `mariadb`, and Python with a driver, beside Rust.

use std::{
    future::IntoFuture,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use e2e::{database_client::mariadb, project::root, python::environment, servers::until};
use fenced_store::MySqlFencedStore;
use lock_core::Ttl;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::MySqlPool;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::OnceCell,
    time::timeout,
};

use crate::world::{count, database, manager};

const PATIENCE: Duration = Duration::from_secs(30);
const BALANCE: &str = "select balance from account where id = 1";
const WAITING: &str = "select count(*) from fenced_waiter";

/// The interpreter that has the driver.
async fn python() -> PathBuf {
    static MADE: OnceCell<PathBuf> = OnceCell::const_new();
    let made = MADE.get_or_init(|| async {
        let make = || {
            let list = "lock-services/mysql/tests/pymysql/requirements.txt";
            environment(Path::new(env!("CARGO_TARGET_TMPDIR")), &root().join(list))
        };
        tokio::task::spawn_blocking(make).await.unwrap()
    });
    made.await.join("bin").join("python")
}

/// A program that prints lines of JSON, and goes on at each line of its input.
struct Depositor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Depositor {
    async fn start(program: &Path, url: &str, amount: &str) -> Self {
        let mut child = Command::new(python().await)
            .arg(program)
            .args([plain(url), amount])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    async fn says(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await;
        let line = line.expect("it says nothing").unwrap();
        serde_json::from_str(&line.expect("it has ended")).unwrap()
    }

    async fn go_on(&mut self) {
        self.input.write_all(b"\n").await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }
}

/// The URL without the parameters of our own driver.
fn plain(url: &str) -> &str {
    url.split('?').next().unwrap()
}

fn example(name: &str) -> std::path::PathBuf {
    root().join("docs/examples").join(name)
}

async fn bank(url: &str) -> MySqlPool {
    let pool = MySqlPool::connect(url).await.unwrap();
    let account = "create table account (id int primary key, balance bigint not null);
        insert into account values (1, 100)";
    sqlx::raw_sql(account).execute(&pool).await.unwrap();
    pool
}

#[tokio::test]
async fn the_client_of_the_database_makes_a_fenced_deposit() {
    let database = database().await;
    let pool = bank(database.url()).await;
    let script = std::fs::read_to_string(example("fenced_deposit_mysql.sql")).unwrap();
    let (done, said) = mariadb(plain(database.url()), &script).await;
    assert!(done, "{said}");
    assert_eq!(count(&pool, BALANCE).await, 110);
    for outcome in ["granted", "outcomes\nr\n", "released"] {
        assert!(said.contains(outcome), "{outcome}: {said}");
    }
}

#[tokio::test]
async fn python_and_rust_wait_in_one_queue() {
    let database = database().await;
    let pool = bank(database.url()).await;
    let locks = manager(database.url()).await;
    let first = locks.acquire("account:1").ttl(Ttl::secs(60)).await.unwrap();
    let program = example("fenced_deposit_mysql.py");
    let mut python = Depositor::start(&program, database.url(), "10").await;
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
    assert!(python.child.wait().await.unwrap().success());
}

/// Python reads 100, and is stopped until its lease has run out; meanwhile 50 are deposited. Then
/// it goes on as if nothing had happened, and writes 110. Returns its answer, and the balance.
async fn stopped_past_its_lease(program: &Path) -> (Value, i64) {
    let database = database().await;
    let pool = bank(database.url()).await;
    let mut python = Depositor::start(program, database.url(), "10").await;
    assert_eq!(python.says().await["read"], 100);
    python.signal(Signal::STOP);

    let locks = manager(database.url()).await;
    let store = MySqlFencedStore::new(pool.clone());
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
    let fenced = example("fenced_deposit_mysql.py");
    let text = std::fs::read_to_string(&fenced).unwrap();
    let fence = "AND holder = SHA2(%s, 256) AND issuer = %s LOCK IN SHARE MODE";
    assert_eq!(text.matches(fence).count(), 1);
    let folder = tempfile::tempdir().unwrap();
    let unfenced = folder.path().join("unfenced_deposit.py");
    std::fs::write(
        &unfenced,
        text.replace("resource = %s AND token = %s", "%s <> '' OR %s <> 0"),
    )
    .unwrap();

    // The control: without the fence the deposit of 50 is lost.
    let (said, balance) = stopped_past_its_lease(&unfenced).await;
    assert_eq!((said, balance), (json!({ "written": 110 }), 110));
    let (said, balance) = stopped_past_its_lease(&fenced).await;
    assert!(
        said["refused"].is_u64() && balance == 150,
        "{said}, {balance}"
    );
}
