use std::{sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind, FencingToken, HolderView, Inspection, Listed, Metadata, ResourceName,
    backend::{Forced, repeat, support::LeaseNames},
};
use sqlx::{Row, sqlite::SqliteRow};
use tracing::warn;

use super::{
    acquire::token,
    client::{Client, Durability},
    error::translate,
    rows::{SILENCE, shown},
};

impl Client {
    pub(super) async fn inspect(
        self: &Arc<Self>,
        resource: &ResourceName,
    ) -> Result<Inspection, Error> {
        let (rows, now) = self.leases(Some(self.names.of(resource))).await?;
        let row = rows.first();
        row.map_or_else(
            || Ok(Inspection::new(None).waiters(0)),
            |row| inspection(row, now),
        )
    }

    pub(super) async fn list(self: &Arc<Self>) -> Result<Vec<Listed>, Error> {
        let (rows, now) = self.leases(None).await?;
        // A row that was made by hand must not hide the others.
        let listed = rows
            .iter()
            .filter_map(|row| match listed(row, now, &self.names) {
                Ok(listed) => listed,
                Err(error) => {
                    warn!(%error, "a row of `fenced_lease` cannot be read, and is left out");
                    None
                }
            });
        Ok(listed.collect())
    }

    async fn leases(
        self: &Arc<Self>,
        only: Option<String>,
    ) -> Result<(Vec<SqliteRow>, i64), Error> {
        let now = self.unix_micros();
        let rows = self.read(move |connection| {
            let query = sqlx::query(include_str!("list.sql"));
            let query = query.bind(now).bind(SILENCE).bind(only);
            Box::pin(query.fetch_all(connection))
        });
        Ok((rows.await?, now))
    }

    pub(super) async fn force_release(
        self: &Arc<Self>,
        resource: &ResourceName,
        forced: FencingToken,
    ) -> Result<Forced, Error> {
        // Sent again it ends nothing more, and gets the same revocation token.
        let force = || async {
            let lease = self.names.of(resource);
            let force = self.write(Durability::Flushed, move |rows| {
                Box::pin(async move { rows.force_release(&lease, forced.into()).await })
            });
            force.await?
        };
        match repeat(&*self.runtime, force).await? {
            Some(revocation) => Ok(Forced::Ended {
                revocation: token(revocation)?,
            }),
            None => Ok(Forced::NotHeld),
        }
    }
}

/// Nothing of another prefix.
fn listed(row: &SqliteRow, now: i64, names: &LeaseNames) -> Result<Option<Listed>, Error> {
    let lease: &str = row.try_get("resource").map_err(translate)?;
    let Some(resource) = names.resource_of(lease) else {
        return Ok(None);
    };
    let resource = ResourceName::new(resource).map_err(|error| {
        Error::not_applied(ErrorKind::Refused)
            .because("a row of `fenced_lease` cannot be read")
            .caused_by(error)
    })?;
    Ok(Some(Listed::new(resource, inspection(row, now)?)))
}

fn inspection(row: &SqliteRow, now: i64) -> Result<Inspection, Error> {
    let holder: Option<&str> = row.try_get("holder").map_err(translate)?;
    let holder = match holder {
        Some(holder) => {
            let until: i64 = row.try_get("expires_at").map_err(translate)?;
            let left = Duration::from_micros(u64::try_from(until - now).unwrap_or(0));
            let token = token(row.try_get("token").map_err(translate)?)?;
            let note: Option<&str> = row.try_get("metadata").map_err(translate)?;
            let view = HolderView::of_fingerprint(shown(holder), token, left);
            Some(view.metadata(note.map(Metadata::escaped)))
        }
        None => None,
    };
    let waiters: i64 = row.try_get("waiters").map_err(translate)?;
    Ok(Inspection::new(holder).waiters(waiters.unsigned_abs()))
}
