//! Writes of one row that are protected in different ways: by the fence, by protections that an
//! application could use instead, and by nothing. Each write commits the same change once.

use std::sync::atomic::{AtomicI64, Ordering};

use fenced_store::PgFencedStore;
use lock_core::Sequencer;
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, postgres::PgQueryResult};

use super::load::Load;
use crate::{figure::BoxError, paired::rotate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Protection {
    /// No write at all: the cost of a message and its answer.
    EmptyStatement,
    /// An update alone.
    PlainStatement,
    /// The update compares a version, and raises it.
    VersionColumn,
    FencedStatement,
    /// Begin, update, commit.
    PlainTransaction,
    FencedTransaction,
    /// The transaction reads the row `FOR UPDATE` first.
    ForUpdate,
    /// The transaction takes an advisory lock first.
    AdvisoryLock,
}

/// All protections, in the order of the page.
pub(crate) const PROTECTIONS: [Protection; 8] = [
    Protection::EmptyStatement,
    Protection::PlainStatement,
    Protection::VersionColumn,
    Protection::FencedStatement,
    Protection::PlainTransaction,
    Protection::FencedTransaction,
    Protection::ForUpdate,
    Protection::AdvisoryLock,
];

/// The protections that an application could use instead of a fence.
pub(crate) const ALTERNATIVES: [Protection; 3] = [
    Protection::VersionColumn,
    Protection::ForUpdate,
    Protection::AdvisoryLock,
];

impl Protection {
    pub(crate) const fn is_ours(self) -> bool {
        matches!(self, Self::FencedStatement | Self::FencedTransaction)
    }

    /// The number of messages that a client sends. The client waits for the answer to each.
    pub(crate) const fn messages(self) -> u32 {
        match self {
            Self::EmptyStatement
            | Self::PlainStatement
            | Self::VersionColumn
            | Self::FencedStatement => 1,
            Self::PlainTransaction | Self::FencedTransaction => 3,
            Self::ForUpdate | Self::AdvisoryLock => 4,
        }
    }
}

/// Adds one to the balance of an account.
const UPDATE: &str = "UPDATE accounts SET balance = balance + 1 WHERE id = $1";

/// Clients, each of which writes to an account of its own.
pub(super) struct Writers {
    store: PgFencedStore,
    load: Load,
    /// The grant of each client.
    grants: Vec<Sequencer>,
    /// The version that each client expects.
    versions: Vec<AtomicI64>,
}

impl Writers {
    /// Claims the resources that the clients are going to write.
    pub(super) async fn claim(store: PgFencedStore, load: Load) -> Result<Self, BoxError> {
        Ok(Self {
            grants: load.claim(&store).await?,
            versions: (0..load.clients).map(|_| AtomicI64::new(0)).collect(),
            store,
            load,
        })
    }

    /// The median time of a write, in microseconds, with each of these protections, which take
    /// turns.
    pub(super) async fn medians(
        &self,
        rounds: u32,
        protections: &[Protection],
    ) -> Result<Vec<f64>, BoxError> {
        rotate(rounds, protections, async |protection, samples| {
            let write = |client| self.write(protection, client);
            self.load.turn(samples, write).await
        })
        .await
    }

    async fn write(&self, protection: Protection, client: u32) -> Result<(), BoxError> {
        let account = i64::from(client);
        let update = || sqlx::query(UPDATE).bind(account);
        let (store, pool) = (&self.store, self.store.pool());
        let grant = &self.grants[client as usize];
        match protection {
            Protection::EmptyStatement => {
                sqlx::query("SELECT 1").execute(pool).await?;
            }
            Protection::PlainStatement => one_row(&update().execute(pool).await?)?,
            Protection::VersionColumn => {
                let version = &self.versions[client as usize];
                let expected = version.fetch_add(1, Ordering::Relaxed);
                let update = sqlx::query(
                    "UPDATE accounts SET balance = balance + 1, version = version + 1 \
                     WHERE id = $1 AND version = $2",
                );
                one_row(&update.bind(account).bind(expected).execute(pool).await?)?;
            }
            Protection::FencedStatement => {
                store.begin(grant).execute(update()).await?;
            }
            Protection::FencedTransaction => {
                let mut tx = store.begin(grant).await?;
                one_row(&update().execute(&mut *tx).await?)?;
                tx.commit().await?;
            }
            Protection::PlainTransaction | Protection::ForUpdate | Protection::AdvisoryLock => {
                let mut tx = pool.begin().await?;
                lock(protection, &mut tx, account).await?;
                one_row(&update().execute(&mut *tx).await?)?;
                tx.commit().await?;
            }
        }
        Ok(())
    }
}

/// Locks an account until the transaction ends, if that is its protection.
async fn lock(protection: Protection, tx: &mut PgConnection, account: i64) -> Result<(), BoxError> {
    let lock = match protection {
        Protection::ForUpdate => "SELECT balance FROM accounts WHERE id = $1 FOR UPDATE",
        Protection::AdvisoryLock => "SELECT pg_advisory_xact_lock($1)",
        _ => return Ok(()),
    };
    sqlx::query(lock).bind(account).execute(tx).await?;
    Ok(())
}

fn one_row(updated: &PgQueryResult) -> Result<(), BoxError> {
    match updated.rows_affected() {
        1 => Ok(()),
        rows => Err(format!("{rows} rows were updated instead of 1").into()),
    }
}
