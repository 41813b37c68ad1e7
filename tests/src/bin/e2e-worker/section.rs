use std::error::Error;

use clap::{Args, ValueEnum};
use fenced_store::{Dialect, FenceError, FencedStore};
use lock_core::LeaseGuard;
use serde_json::json;
use sqlx::{ColumnIndex, Decode, Encode, Executor, IntoArguments, PgPool, SqlitePool, Type};

use crate::{Lock, Talk, say};

/// A read, a pause, and a write of the value read plus something: the typical use of a lock.
#[derive(Args)]
pub(crate) struct Section {
    #[command(flatten)]
    lock: Lock,
    /// URL of the database, which has `account(id, balance)` with one row, of id 1.
    #[arg(long)]
    store: String,
    /// Whether the store checks the token.
    #[arg(long)]
    mode: Mode,
    /// The amount that is added to the balance.
    #[arg(long)]
    add: i64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Fenced,
    Unfenced,
}

const READ: &str = "SELECT balance FROM account WHERE id = 1";
const WRITE: &str = "UPDATE account SET balance = $1 WHERE id = 1";

/// Acquires, reads, reports the balance, and writes at a line of input.
pub(crate) async fn run(section: &Section, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let guard = {
        let locks = section.lock.connect().await?;
        locks
            .acquire(section.lock.resource.as_str())
            .ttl(section.lock.ttl())
            .await?
    };
    if section.store.starts_with("postgres:") {
        let store = FencedStore::new(PgPool::connect(&section.store).await?);
        in_database(section, &store, &guard, &mut talk).await?;
    } else {
        let store = FencedStore::new(SqlitePool::connect(&section.store).await?);
        in_database(section, &store, &guard, &mut talk).await?;
    }
    guard.release().await?;
    Ok(())
}

async fn in_database<DB>(
    section: &Section,
    store: &FencedStore<DB>,
    guard: &LeaseGuard,
    talk: &mut Talk,
) -> Result<(), Box<dyn Error>>
where
    DB: Dialect,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Decode<'q, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    if matches!(section.mode, Mode::Fenced) {
        store.claim(guard.sequencer()).await?;
    }
    let mut connection = store.pool().acquire().await?;
    let read: i64 = sqlx::query_scalar(READ).fetch_one(&mut *connection).await?;
    say(&json!({ "token": guard.token(), "read": read }))?;
    if !talk.told_to_go_on().await? {
        return Ok(());
    }
    let write = sqlx::query(WRITE).bind(read + section.add);
    let result = match section.mode {
        Mode::Unfenced => write
            .execute(&mut *connection)
            .await
            .map(drop)
            .map_err(FenceError::from),
        Mode::Fenced => match store.begin(guard.sequencer()).await {
            Ok(mut tx) => {
                write.execute(&mut *tx).await?;
                tx.commit().await.map(drop)
            }
            Err(error) => Err(error),
        },
    };
    say(&match result {
        Ok(()) => json!({ "written": read + section.add }),
        Err(FenceError::Stale { high_water, .. }) => json!({ "stale_below": high_water }),
        Err(error) => return Err(error.into()),
    })?;
    Ok(())
}
