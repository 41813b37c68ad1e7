use tracing::warn;

use super::{LeaseNames, Leases, Row};
use crate::{Error, ErrorKind, HolderView, Inspection, Listed, Metadata, ResourceName};

pub(super) async fn inspect(
    database: &impl Leases,
    resource: &ResourceName,
) -> Result<Inspection, Error> {
    let rows = database.list(Some(resource)).await?;
    let row = rows.first();
    row.map_or_else(|| Ok(Inspection::new(None).waiters(0)), inspection)
}

pub(super) async fn list(database: &impl Leases) -> Result<Vec<Listed>, Error> {
    let rows = database.list(None).await?;
    // A row that was made by hand must not hide the others.
    let readable = |row| match listed(row, database.names()) {
        Ok(listed) => listed,
        Err(error) => {
            warn!(%error, "a row of a lease cannot be read, and is left out");
            None
        }
    };
    Ok(rows.iter().filter_map(readable).collect())
}

/// The entry of a row. `None` if its lease has another prefix.
fn listed(row: &impl Row, names: &LeaseNames) -> Result<Option<Listed>, Error> {
    let lease = row.text("resource")?;
    let Some(resource) = names.resource_of(&lease) else {
        return Ok(None);
    };
    let resource = ResourceName::new(resource).map_err(|error| {
        Error::not_applied(ErrorKind::Refused)
            .because("the name of a lease cannot be read")
            .caused_by(error)
    })?;
    Ok(Some(Listed::new(resource, inspection(row)?)))
}

fn inspection(row: &impl Row) -> Result<Inspection, Error> {
    let holder = match row.text_or_null("holder")? {
        Some(fingerprint) => {
            let (token, left) = (row.token("token")?, row.millis("left_ms")?);
            let view = HolderView::of_fingerprint(&fingerprint, token, left);
            let note = row.text_or_null("metadata")?;
            Some(view.metadata(note.as_deref().map(Metadata::escaped)))
        }
        None => None,
    };
    Ok(Inspection::new(holder).waiters(row.number("waiters")?))
}
