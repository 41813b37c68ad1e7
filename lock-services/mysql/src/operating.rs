use std::time::Duration;

use lock_core::{
    Error, ErrorKind, FencingToken, HolderView, Inspection, Listed, Metadata, ResourceName,
    backend::{Forced, repeat, support::LeaseNames},
};
use tracing::warn;

use super::{
    calls,
    client::Client,
    row::{Row, token},
};

impl Client {
    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let rows = self
            .rows(calls::leases(&self.names, Some(resource)))
            .await?;
        rows.first()
            .map_or_else(|| Ok(Inspection::new(None).waiters(0)), inspection)
    }

    pub(super) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let rows = self.rows(calls::leases(&self.names, None)).await?;
        // A row that was made by hand must not hide the others.
        let listed = rows
            .iter()
            .filter_map(|row| match listed(row, &self.names) {
                Ok(listed) => listed,
                Err(error) => {
                    warn!(%error, "a row of `fenced_lease` cannot be read, and is left out");
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
        let force = || self.one(calls::force_release(&self.names, resource, forced));
        let row = repeat(&*self.runtime, force).await?;
        match &*row.text("outcome")? {
            "ended" => Ok(Forced::Ended {
                revocation: token(row.number("revocation")?)?,
            }),
            "exhausted" => Err(Error::not_applied(ErrorKind::TokensExhausted)),
            _ => Ok(Forced::NotHeld),
        }
    }
}

/// Nothing of another prefix.
fn listed(row: &Row, names: &LeaseNames) -> Result<Option<Listed>, Error> {
    let lease = row.text("resource")?;
    let Some(resource) = names.resource_of(&lease) else {
        return Ok(None);
    };
    let resource = ResourceName::new(resource).map_err(unreadable)?;
    Ok(Some(Listed::new(resource, inspection(row)?)))
}

fn inspection(row: &Row) -> Result<Inspection, Error> {
    let holder = match row.text_or_null("holder")? {
        Some(fingerprint) => {
            let left = Duration::from_millis(row.number("left_ms")?);
            let token = token(row.number("token")?)?;
            let view = HolderView::of_fingerprint(&fingerprint, token, left);
            let note = row.text_or_null("metadata")?;
            Some(view.metadata(note.as_deref().map(Metadata::escaped)))
        }
        None => None,
    };
    Ok(Inspection::new(holder).waiters(row.number("waiters")?))
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::not_applied(ErrorKind::Refused)
        .because("a row of `fenced_lease` cannot be read")
        .caused_by(error)
}
