//! A process that is stopped or killed in the middle of a write keeps the others from the file
//! until it goes on or ends. Changes that it had not committed are not in the file.

use std::time::Duration;

use e2e::depositor::Depositor;
use lock_core::{ErrorKind, LockManager, Ttl};
use rustix::process::Signal;
use sqlx::SqlitePool;

use crate::world::{Folder, count, manager};

/// A program that writes, and commits when it reads a line of its input.
const WRITER: &str = "\
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute('BEGIN IMMEDIATE')
file.execute('UPDATE account SET balance = balance + 1')
file.execute(\"UPDATE fenced_lease SET holder = ''\")
print('{}', flush=True)
sys.stdin.readline()
file.execute('COMMIT')
print('{}', flush=True)
";

struct World {
    folder: Folder,
    pool: SqlitePool,
    locks: LockManager,
}

impl World {
    /// A world with a lease on `r`, which outlasts the test.
    async fn new() -> Self {
        let folder = Folder::new();
        let pool = folder.pool().await;
        let account = "CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (0)";
        sqlx::raw_sql(account).execute(&pool).await.unwrap();
        let url = format!("{}?response_timeout_ms=1000", folder.url());
        let locks = palisade::connect(url).await.unwrap();
        Self {
            folder,
            pool,
            locks,
        }
    }

    /// A process that has written and not committed.
    async fn writer(&self) -> Depositor {
        let program = self.folder.file().with_extension("py");
        std::fs::write(&program, WRITER).unwrap();
        let file = self.folder.file();
        let mut writer = Depositor::start(&program, file.to_str().unwrap(), "1");
        writer.says().await;
        writer
    }

    async fn balance(&self) -> i64 {
        count(&self.pool, "SELECT balance FROM account").await
    }
}

#[tokio::test]
async fn a_process_stopped_in_a_write_delays_the_others_and_loses_nothing() {
    let world = World::new().await;
    let held = world
        .locks
        .acquire("held")
        .ttl(Ttl::secs(600))
        .await
        .unwrap();
    let mut writer = world.writer().await;
    writer.signal(Signal::STOP);
    let refused = world.locks.try_acquire("r").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    // Readers are not kept out.
    let seen = world.locks.inspect("held").await.unwrap();
    assert_eq!(seen.holder.unwrap().token, held.token());

    writer.signal(Signal::CONT);
    writer.go_on().await;
    writer.says().await;
    assert_eq!(world.balance().await, 1);
    drop(world.locks.acquire("r").ttl(Ttl::secs(600)).await.unwrap());
}

#[tokio::test]
async fn a_process_killed_in_a_write_leaves_nothing_of_it() {
    let world = World::new().await;
    let held = world
        .locks
        .acquire("held")
        .ttl(Ttl::secs(600))
        .await
        .unwrap();
    let writer = world.writer().await;
    writer.signal(Signal::KILL);
    let wait = world.locks.acquire("r").ttl(Ttl::secs(600));
    drop(wait.wait(Duration::from_secs(30)).await.unwrap());
    assert_eq!(world.balance().await, 0);
    let others = manager(&world.folder).await;
    let seen = others.inspect("held").await.unwrap();
    assert_eq!(seen.holder.unwrap().token, held.token());
}
