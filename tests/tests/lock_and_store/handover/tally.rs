//! A list of numbers that is read and written back as a whole, each time with one number more. Its
//! twin is read and written by the same clients at the same moments, without a fence.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use fenced_store::{FenceError, FencedTx, PgFencedStore};
use lock_core::Sequencer;
use sqlx::{PgConnection, Postgres};

pub(crate) const RESOURCE: &str = "account:42";

pub(crate) struct Tally {
    store: PgFencedStore,
    written: Mutex<BTreeSet<i64>>,
    twin_written: Mutex<BTreeSet<i64>>,
}

/// The numbers that a client has read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    fenced: Vec<i64>,
    twin: Vec<i64>,
}

/// The accepted writes, in the order of their acceptance.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) issuer: String,
    pub(crate) token: i64,
}

impl Tally {
    pub(crate) async fn create(store: &PgFencedStore) -> Self {
        let tables = "CREATE TABLE tally (id text PRIMARY KEY, numbers bigint[] NOT NULL); \
                      INSERT INTO tally VALUES ('fenced', '{}'), ('twin', '{}'); \
                      CREATE TABLE accepted \
                        (place bigserial PRIMARY KEY, issuer text, token bigint)";
        sqlx::raw_sql(tables).execute(store.pool()).await.unwrap();
        Self {
            store: store.clone(),
            written: Mutex::default(),
            twin_written: Mutex::default(),
        }
    }

    pub(crate) async fn claim(&self, grant: &Sequencer) -> Result<(), FenceError> {
        self.store.claim(grant).await
    }

    /// Reads the list in a fenced transaction, and its twin without one.
    pub(crate) async fn read(&self, grant: &Sequencer) -> Result<Read, FenceError> {
        let mut tx: FencedTx<Postgres> = self.store.begin(grant).await?;
        let fenced = numbers(&mut tx, "fenced").await?;
        tx.commit().await?;
        let mut connection = self.store.pool().acquire().await?;
        let twin = numbers(&mut connection, "twin").await?;
        Ok(Read { fenced, twin })
    }

    /// Writes back the numbers of a read, and a number that no other client writes.
    pub(crate) async fn write(
        &self,
        grant: &Sequencer,
        mut read: Read,
        number: i64,
    ) -> Result<(), FenceError> {
        read.twin.push(number);
        let mut connection = self.store.pool().acquire().await?;
        replace(&mut connection, "twin", &read.twin).await?;
        drop(connection);
        remember(&self.twin_written, number);

        read.fenced.push(number);
        let mut tx = self.store.begin(grant).await?;
        replace(&mut tx, "fenced", &read.fenced).await?;
        sqlx::query("INSERT INTO accepted (issuer, token) VALUES ($1, $2)")
            .bind(grant.issuer().as_str())
            .bind(i64::from(grant.token()))
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        remember(&self.written, number);
        Ok(())
    }

    /// How many writes were accepted so far.
    pub(crate) fn written(&self) -> usize {
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// How many accepted writes are not there any more.
    pub(crate) async fn lost(&self) -> usize {
        self.missing("fenced", &self.written).await
    }

    /// How many writes are missing from the twin: the control.
    pub(crate) async fn lost_from_twin(&self) -> usize {
        self.missing("twin", &self.twin_written).await
    }

    pub(crate) async fn accepted(&self) -> Vec<Accepted> {
        let accepted = sqlx::query_as("SELECT issuer, token FROM accepted ORDER BY place");
        let accepted: Vec<_> = accepted.fetch_all(self.store.pool()).await.unwrap();
        let accepted = accepted.into_iter();
        accepted
            .map(|(issuer, token)| Accepted { issuer, token })
            .collect()
    }

    async fn missing(&self, id: &'static str, written: &Mutex<BTreeSet<i64>>) -> usize {
        let mut connection = self.store.pool().acquire().await.unwrap();
        let found = numbers(&mut connection, id).await.unwrap();
        let written = written.lock().unwrap_or_else(PoisonError::into_inner);
        written.difference(&found.into_iter().collect()).count()
    }
}

async fn numbers(connection: &mut PgConnection, id: &str) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT numbers FROM tally WHERE id = $1")
        .bind(id)
        .fetch_one(connection)
        .await
}

async fn replace(
    connection: &mut PgConnection,
    id: &str,
    numbers: &[i64],
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE tally SET numbers = $2 WHERE id = $1")
        .bind(id)
        .bind(numbers)
        .execute(connection)
        .await?;
    Ok(())
}

fn remember(numbers: &Mutex<BTreeSet<i64>>, number: i64) {
    let mut numbers = numbers.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(numbers.insert(number), "{number} was written twice");
}
