//! Attacks on readers: operators, lists, the gateway. Every text that can be stored can be read.

use lock_core::LockManager;
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::world::{database, manager, migrate, named};

async fn names(locks: &LockManager) -> Vec<String> {
    let listed = locks.list().await.unwrap();
    let mut names: Vec<_> = listed
        .iter()
        .map(|listed| listed.resource.to_string())
        .collect();
    names.sort();
    names
}

/// The longest and strangest values that the functions take, and a row that the owner has broken by
/// hand.
/// Catches: one row that makes a list fail for all operators.
#[tokio::test]
async fn one_row_hides_no_other_from_a_list() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    let longest = "~".repeat(256);
    for call in [
        "SELECT fenced.acquire('strange', E'\\u0001\\n\"%', E'\\n', 86400000,
           metadata => U&'\\009b\\2028\\202e' || repeat('\\', 1016))",
        "SELECT fenced.acquire(repeat('~', 256), repeat(U&'\\+01F512', 64), repeat('a', 256),
           86400000)",
        "SELECT fenced.acquire('broken', 'h', 'a', 86400000)",
        "SELECT fenced.acquire('broken', 'w', 'a', 86400000, NULL)",
        "UPDATE fenced.lease SET token = -1 WHERE resource = 'broken'",
    ] {
        pool.execute(call).await.unwrap();
    }
    assert_eq!(names(&locks).await, ["strange", longest.as_str()]);
    for name in ["strange", longest.as_str()] {
        let seen = locks.inspect(&named(name)).await.unwrap();
        let holder = seen.holder.unwrap();
        assert_eq!(holder.fingerprint.len(), 16);
        let note = holder.metadata.map(|note| note.to_string());
        assert!(!note.unwrap_or_default().contains(char::is_control));
        let forced = locks.force_release(&named(name)).await;
        forced.unwrap();
    }
    assert_eq!(names(&locks).await, Vec::<String>::new());
}

/// In a database without an encoding a text may have any bytes.
/// Catches: a note that is not UTF-8, and hides its lease.
#[tokio::test]
async fn a_note_that_no_client_could_read_is_refused() {
    let first = database().await;
    let admin = PgPool::connect(first.url()).await.unwrap();
    let name = format!("ascii_{:016x}", rand::random::<u64>());
    let create = format!(
        "CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    );
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    let (server, rest) = first.url().rsplit_once('/').unwrap();
    let parameters = rest.split_once('?').map(|(_, parameters)| parameters);
    let url = format!("{server}/{name}?{}", parameters.unwrap_or_default());
    migrate(&url).await;
    let pool = PgPool::connect(&url).await.unwrap();
    let call = |note| format!("SELECT fenced.acquire('r', 'h', 'a', 60000, metadata => {note})");
    let attack = AssertSqlSafe(call("E'caf\\xe9'"));
    let refused = pool.execute(attack).await.unwrap_err();
    let code = refused.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("22021"), "{refused}");
    pool.execute(AssertSqlSafe(call("'café'"))).await.unwrap();
    let locks = manager(&url).await;
    let seen = locks.inspect(&named("r")).await.unwrap();
    let note = seen.holder.unwrap().metadata.unwrap();
    assert_eq!(note.as_str(), "café");
    drop(locks);
    pool.close().await;
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    admin.execute(AssertSqlSafe(drop)).await.unwrap();
}
