//! The variables that describe the lease to the command.

use fenced_http::{FencingHeader, signed::SigningKey};
use fenced_jobs::Slot;
use http::HeaderValue;
use lock_core::Sequencer;

use crate::failure::Failure;

/// Names and values, in the order of the help.
pub(super) type Environment = Vec<(&'static str, String)>;

/// The environment of a lease, and of a slot if the command is a job. A key signs the header.
pub(super) fn of(
    sequencer: &Sequencer,
    slot: Option<&Slot>,
    key: Option<&SigningKey>,
) -> Result<Environment, Failure> {
    let mut environment = vec![
        ("FENCING_TOKEN", sequencer.token().to_string()),
        ("FENCING_RESOURCE", sequencer.resource().to_string()),
        // This is the form in which databases take the holder.
        ("FENCING_HOLDER", sequencer.holder().digest()),
        ("FENCING_ISSUER", sequencer.issuer().to_string()),
        ("FENCING_HEADER", header(sequencer, key)?),
    ];
    environment.extend(slot.map(|slot| ("FENCING_SLOT", slot.to_string())));
    Ok(environment)
}

/// The whole header, in the form for `curl --header`.
fn header(sequencer: &Sequencer, key: Option<&SigningKey>) -> Result<String, Failure> {
    let header = FencingHeader::new(sequencer);
    let value = match key {
        None => HeaderValue::try_from(header),
        Some(key) => HeaderValue::try_from(key.sign(header)),
    };
    let value = value.map_err(|error| Failure::Usage(error.to_string()))?;
    let value = String::from_utf8_lossy(value.as_bytes());
    Ok(format!("Fencing-Token: {value}"))
}
