use std::sync::Arc;

use fenced_store::{
    FenceError, FencedStore, Memory, MemoryFencedStore, SqliteFencedStore, Storage,
    memory::{MemorySession, MemoryTxOptions},
};
use sqlx::{
    Row as _, Sqlite, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use super::StoreWire;
use crate::{clients::Surroundings, judge::act::Row};

/// A store whose rows the clients of a schedule read and write.
pub(crate) trait Ledger: Storage {
    /// The data, which all clients share.
    type Data: Clone + Send + Sync;

    /// Whether each step of the store is seen. Otherwise only its rows at the end are judged.
    const IS_SEEN: bool;

    /// The way of one client to the store.
    fn store(around: &Surroundings<Self>, client: u32) -> FencedStore<Self>;

    /// Reads a row.
    fn row(
        session: &mut Self::Session,
        name: &str,
    ) -> impl Future<Output = Result<Option<Row>, FenceError>> + Send;

    /// Writes a row.
    fn set_row(
        session: &mut Self::Session,
        name: &str,
        row: &Row,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;
}

impl Ledger for Memory {
    type Data = Self;

    const IS_SEEN: bool = true;

    fn store(around: &Surroundings<Self>, client: u32) -> MemoryFencedStore {
        let wire = StoreWire::new(client, &around.network, &around.weather, &around.watch);
        let memory = around.data.through(Arc::new(wire));
        let options = MemoryTxOptions::default().lock_timeout(around.plan.lock_timeout);
        MemoryFencedStore::in_memory(memory).with_options(options)
    }

    async fn row(session: &mut MemorySession, name: &str) -> Result<Option<Row>, FenceError> {
        session.get(name)
    }

    async fn set_row(session: &mut MemorySession, name: &str, row: &Row) -> Result<(), FenceError> {
        session.set(name, row)
    }
}

impl Ledger for Sqlite {
    /// A process that is killed takes its connections with it, so each has a pool of its own.
    type Data = SqliteConnectOptions;

    const IS_SEEN: bool = false;

    fn store(around: &Surroundings<Self>, _: u32) -> SqliteFencedStore {
        let pool = SqlitePoolOptions::new().max_connections(3);
        SqliteFencedStore::new(pool.connect_lazy_with(around.data.clone()))
    }

    async fn row(session: &mut SqliteConnection, name: &str) -> Result<Option<Row>, FenceError> {
        let read = sqlx::query("SELECT data FROM ledger WHERE name = ?").bind(name);
        let row = read.fetch_optional(session).await?;
        let data = row.map(|row| row.get::<String, _>(0));
        let row = data.map(|data| serde_json::from_str(&data)).transpose();
        row.map_err(|error| sqlx::Error::Decode(error.into()).into())
    }

    async fn set_row(
        session: &mut SqliteConnection,
        name: &str,
        row: &Row,
    ) -> Result<(), FenceError> {
        let data = serde_json::to_string(row).map_err(|error| sqlx::Error::Encode(error.into()))?;
        let write = "INSERT INTO ledger (name, data) VALUES (?, ?) \
                     ON CONFLICT (name) DO UPDATE SET data = excluded.data";
        sqlx::query(write)
            .bind(name)
            .bind(data)
            .execute(session)
            .await?;
        Ok(())
    }
}
