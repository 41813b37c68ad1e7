use std::time::Duration;

use lock_core::{
    Error, ErrorKind, FencingToken, HolderView, Inspection, Listed, Metadata, ResourceName,
    backend::{Forced, repeat, support::LeaseNames},
};
use sqlx::{Row, postgres::PgRow};
use tracing::warn;

use super::{
    client::Client,
    error::translate,
    rows::{number, token},
    sql,
};

impl Client {
    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let rows = self.rows(sql::leases(Some(resource))).await?;
        rows.first()
            .map_or_else(|| Ok(Inspection::new(None).waiters(0)), inspection)
    }

    pub(super) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let rows = self.rows(sql::leases(None)).await?;
        // A row that was made by hand must not hide the others.
        let listed = rows
            .iter()
            .filter_map(|row| match listed(row, &self.names) {
                Ok(listed) => listed,
                Err(error) => {
                    warn!(%error, "a row of `fenced.lease` cannot be read, and is left out");
                    None
                }
            });
        Ok(listed.collect())
    }

    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        forced: FencingToken,
    ) -> Result<Forced, Error> {
        // Sent again it ends nothing more, and gets the same revocation token.
        let force = || self.one(sql::force_release(resource, forced));
        let row = repeat(&*self.runtime, force).await?;
        let outcome: &str = row.try_get("outcome").map_err(translate)?;
        match outcome {
            "ended" => Ok(Forced::Ended {
                revocation: token(number(&row, "revocation")?)?,
            }),
            "exhausted" => Err(Error::not_applied(ErrorKind::TokensExhausted)),
            _ => Ok(Forced::NotHeld),
        }
    }
}

/// Nothing of another prefix.
fn listed(row: &PgRow, names: &LeaseNames) -> Result<Option<Listed>, Error> {
    let lease: &str = row.try_get("resource").map_err(translate)?;
    let Some(resource) = names.resource_of(lease) else {
        return Ok(None);
    };
    let resource = ResourceName::new(resource).map_err(unreadable)?;
    Ok(Some(Listed::new(resource, inspection(row)?)))
}

fn inspection(row: &PgRow) -> Result<Inspection, Error> {
    let holder: Option<String> = row.try_get("holder").map_err(translate)?;
    let holder = match holder {
        Some(fingerprint) => {
            let left = Duration::from_millis(number(row, "left_ms")?);
            let token = token(number(row, "token")?)?;
            let view = HolderView::of_fingerprint(&fingerprint, token, left);
            let note: Option<&str> = row.try_get("metadata").map_err(translate)?;
            Some(view.metadata(note.map(Metadata::escaped)))
        }
        None => None,
    };
    Ok(Inspection::new(holder).waiters(number(row, "waiters")?))
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::not_applied(ErrorKind::Refused)
        .because("a row of `fenced.lease` cannot be read")
        .caused_by(error)
}
