use std::{sync::Arc, time::Duration};

use lock_core::{
    Error,
    backend::support::{
        fingerprint,
        waiters::{Look, Place, WaiterKey},
    },
};
use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};
use tokio::sync::Mutex;

use super::{
    client::{Client, Durability},
    rows::{SILENCE, shown},
};

/// So late a release by another process may be seen.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Looks for the waiters of this process. While the file does not change, it has the rows that were
/// read last.
pub(super) struct LookInFile {
    client: Arc<Client>,
    last: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// It changes with each commit of another connection.
    version: i64,
    attempts: Vec<String>,
    rows: Vec<SeenRow>,
}

#[derive(Clone)]
struct SeenRow {
    key: WaiterKey,
    is_own: bool,
    is_first: bool,
    held_until: i64,
}

impl LookInFile {
    pub(super) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            last: Mutex::default(),
        }
    }

    async fn version(&self) -> Result<i64, Error> {
        self.client
            .read(|connection| {
                Box::pin(sqlx::query_scalar("PRAGMA main.data_version").fetch_one(connection))
            })
            .await
    }

    async fn rows(&self, attempts: &[String], now: i64) -> Result<Vec<SeenRow>, Error> {
        let asked = json(attempts);
        let client = Arc::clone(&self.client);
        self.client
            .read(move |connection| {
                Box::pin(async move {
                    let rows = look(connection, &asked, now).await?;
                    rows.iter().map(|row| seen(row, &client)).collect()
                })
            })
            .await
    }
}

impl Look for LookInFile {
    async fn look(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        if touch {
            let alive = json(attempts);
            let touched = self.client.write(Durability::Unflushed, move |rows| {
                Box::pin(async move { rows.touch(&alive).await })
            });
            touched.await?;
        }
        let mut last = self.last.lock().await;
        // The version is that of rows which are read later, or of older ones.
        let version = self.version().await?;
        let now = self.client.unix_micros();
        // A waiter that dies changes nothing in the file.
        if touch || (last.version, &*last.attempts) != (version, attempts) {
            *last = Seen {
                rows: self.rows(attempts, now).await?,
                version,
                attempts: attempts.to_vec(),
            };
        }
        Ok(last
            .rows
            .iter()
            .map(|row| (row.key.clone(), row.at(now)))
            .collect())
    }

    fn longest_pause(&self) -> Option<Duration> {
        Some(LONGEST_PAUSE)
    }
}

impl SeenRow {
    fn at(&self, now: i64) -> Place {
        let left = u64::try_from(self.held_until - now).unwrap_or(0);
        Place {
            turn: self.is_own || (left == 0 && self.is_first),
            first: self.is_first,
            left: Duration::from_micros(left),
        }
    }
}

async fn look(
    connection: &mut SqliteConnection,
    attempts: &str,
    now: i64,
) -> sqlx::Result<Vec<SqliteRow>> {
    sqlx::query(include_str!("look.sql"))
        .bind(attempts)
        .bind(now)
        .bind(SILENCE)
        .fetch_all(connection)
        .await
}

fn seen(row: &SqliteRow, client: &Client) -> sqlx::Result<SeenRow> {
    let lease: &str = row.try_get("resource")?;
    let attempt: &str = row.try_get("attempt")?;
    Ok(SeenRow {
        key: WaiterKey {
            resource: client.names.resource_of(lease).unwrap_or(lease).to_owned(),
            holder: shown(row.try_get("holder")?).to_owned(),
            attempt: fingerprint(attempt),
        },
        is_own: row.try_get("is_own")?,
        is_first: row.try_get("is_first")?,
        held_until: row.try_get("held_until")?,
    })
}

/// Attempts are of letters, digits and hyphens.
fn json(attempts: &[String]) -> String {
    format!("[\"{}\"]", attempts.join("\",\""))
}
