//! `doctor`: checks whether a lock service and a store can be used together, and says what to
//! change.

mod database;
mod findings;
mod heard;
mod lock_service;

pub(crate) use self::heard::Heard;
use self::{findings::Findings, lock_service::examine_lock};
use super::store::{Operated, on_any, open};
use crate::{address::Address, cli::DoctorArgs, failure::Failure};

/// Examines lock service and store, and prints the findings. Writes nothing but a lease, which it
/// releases.
///
/// # Errors
/// [`Failure::NotAsTold`] if something has to be changed, [`Failure::Refused`] if one of them
/// cannot be used at all.
pub(crate) async fn doctor(args: DoctorArgs, heard: Heard) -> Result<(), Failure> {
    let store = args.store.as_ref();
    let database = store.filter(|store| store.is_database_server());
    let lock = args.lock.as_ref().or(database);
    let mut findings = Findings::default();
    let locks = match lock {
        Some(lock) => {
            let issuer = args.issuer.name.as_ref();
            examine_lock(&mut findings, lock, issuer, &heard).await?
        }
        None => None,
    };
    if let Some(address) = store {
        findings.of("store", address);
        if let Some(opened) = opened(&mut findings, address).await? {
            let locks = locks.as_ref();
            on_any!(opened, store => database::examine(&mut findings, &store, locks).await);
        }
    }
    if let Some(locks) = locks {
        locks.shutdown().await;
    }
    findings.conclude(args.json)
}

/// Opens the store, or adds a finding that says why it cannot be opened. A mistake in the arguments
/// is an error and no finding.
async fn opened(findings: &mut Findings, address: &Address) -> Result<Option<Operated>, Failure> {
    match open(address).await {
        Ok(store) => Ok(Some(store)),
        Err(usage @ Failure::Usage(_)) => Err(usage),
        Err(failure) => {
            findings.down(failure.to_string());
            Ok(None)
        }
    }
}
