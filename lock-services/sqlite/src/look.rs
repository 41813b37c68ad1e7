//! The look by which the waiters of this process find out whether it is their turn.

use std::time::Duration;

use lock_core::{
    Error,
    backend::support::{
        database::{Database as _, LeaseNames, Place, WaiterKey},
        fingerprint,
    },
};
use sqlx::{Row, sqlite::SqliteRow};

use super::{client::Client, connections::Durability, error::translate, rows::SILENCE};

/// The number of characters of a kept holder that others may see.
const SHOWN: usize = 16;

/// The answer to the last look. While the file does not change, it is not read again.
#[derive(Default)]
pub(super) struct Seen {
    /// The version of the file. It changes with each commit of another connection.
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

impl Client {
    pub(super) async fn look_in_file(
        &self,
        attempts: &[String],
        touch: bool,
    ) -> Result<Vec<(WaiterKey, Place)>, Error> {
        if touch {
            let alive = json(attempts);
            let touched = self.write(Durability::Unflushed, move |rows| {
                Box::pin(async move { rows.touch(&alive).await.map(Ok) })
            });
            touched.await?;
        }
        let mut seen = self.seen.lock().await;
        // The version is read before the rows, so it is the version of these rows or of older ones.
        let version = self.version().await?;
        let now = self.unix_micros();
        // A waiter that dies changes nothing in the file, so the rows are also read with each sign
        // of life.
        if touch || (seen.version, &*seen.attempts) != (version, attempts) {
            *seen = Seen {
                rows: self.waiters(attempts, now).await?,
                version,
                attempts: attempts.to_vec(),
            };
        }
        let rows = seen.rows.iter();
        Ok(rows.map(|row| (row.key.clone(), row.at(now))).collect())
    }

    async fn version(&self) -> Result<i64, Error> {
        self.read(|connection| {
            Box::pin(sqlx::query_scalar("PRAGMA main.data_version").fetch_one(connection))
        })
        .await
    }

    async fn waiters(&self, attempts: &[String], now: i64) -> Result<Vec<SeenRow>, Error> {
        let asked = json(attempts);
        let rows = self.read(move |connection| {
            let query = sqlx::query(include_str!("look.sql"));
            let query = query.bind(asked).bind(now).bind(SILENCE);
            Box::pin(query.fetch_all(connection))
        });
        let rows = rows.await?;
        let seen = rows.iter().map(|row| SeenRow::read(row, self.names()));
        seen.collect::<Result<_, _>>().map_err(translate)
    }
}

impl SeenRow {
    fn read(row: &SqliteRow, names: &LeaseNames) -> sqlx::Result<Self> {
        let (lease, holder): (&str, &str) = (row.try_get("resource")?, row.try_get("holder")?);
        Ok(Self {
            key: WaiterKey {
                resource: names.resource_of(lease).unwrap_or(lease).to_owned(),
                holder: holder.get(..SHOWN).unwrap_or(holder).to_owned(),
                attempt: fingerprint(row.try_get("attempt")?),
            },
            is_own: row.try_get("is_own")?,
            is_first: row.try_get("is_first")?,
            held_until: row.try_get("held_until")?,
        })
    }

    fn at(&self, now: i64) -> Place {
        let left = u64::try_from(self.held_until - now).unwrap_or(0);
        Place {
            turn: self.is_own || (left == 0 && self.is_first),
            first: self.is_first,
            left: Duration::from_micros(left),
        }
    }
}

/// The attempts as a JSON array. They have only letters, digits and hyphens.
fn json(attempts: &[String]) -> String {
    format!("[\"{}\"]", attempts.join("\",\""))
}
