//! Commands that show a lock service, and that end the lease of a holder that hangs.

use fenced_store::{Dialect, FencedLockError, FencedLocks, FencedStore};
use lock_core::{
    ErrorKind, ForceReleased, HolderView, InitialToken, Inspection, Issuer, LockManager,
    ResourceName,
};
use palisade_gateway::wire::millis;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;

use super::{
    consent,
    store::{Operated, on_any, open},
    store_error,
};
use crate::{
    address::Address,
    cli::{ForceReleaseArgs, InspectArgs, ListArgs},
    console::Console,
    duration::seconds,
    failure::Failure,
    open, sqlite_file,
};

/// Connects to a lock service that other processes use, too.
pub(super) async fn connect(
    option: &'static str,
    address: &Address,
    issuer: Option<&Issuer>,
) -> Result<LockManager, Failure> {
    if address.is_memory() {
        return Err(Failure::Usage(format!(
            "--{option} memory: is in this process alone; name the lock service of the service"
        )));
    }
    if address.scheme() == "sqlite" {
        // The lock service would create a missing file, which would hide a wrong name.
        let url = address.secret().split('?').next().unwrap_or_default();
        let options: Result<SqliteConnectOptions, _> = url.parse();
        options.map_or(Ok(()), |options| sqlite_file::exists(&options, address))?;
    }
    open::lock_service(option, address, issuer, InitialToken::default()).await
}

/// Prints all resources with a holder or waiters.
pub(crate) async fn list(args: ListArgs) -> Result<(), Failure> {
    let locks = connect("lock", &args.lock.address, None).await?;
    let listed = locks.list().await.map_err(|error| lost(&error))?;
    if args.json {
        let listed = listed
            .iter()
            .map(|it| as_json(&it.resource, &it.inspection));
        Console::Stdout.line(json!({ "leases": listed.collect::<Vec<_>>() }));
        return Ok(());
    }
    for it in &listed {
        Console::Stdout.line(in_words(&it.resource, &it.inspection));
    }
    if listed.is_empty() {
        Console::Stdout.line("nothing is held");
    }
    Ok(())
}

/// Prints the holder of one resource.
pub(crate) async fn inspect(args: InspectArgs) -> Result<(), Failure> {
    let locks = connect("lock", &args.lock.address, None).await?;
    let inspection = locks.inspect(&args.resource).await;
    let inspection = inspection.map_err(|error| lost(&error))?;
    Console::Stdout.line(match args.json {
        true => as_json(&args.resource, &inspection).to_string(),
        false => in_words(&args.resource, &inspection),
    });
    Ok(())
}

/// Ends the lease of the holder of a resource, and shuts that holder out of the store.
pub(crate) async fn force_release(args: ForceReleaseArgs) -> Result<(), Failure> {
    let resource = args.resource;
    let address = &args.store.address;
    let what = format!("The holder of {resource} loses its lease, and is shut out of {address}.");
    consent::ask(args.consent, what, resource.as_str()).await?;
    let issuer = args.issuer.name.as_ref();
    let locks = connect("lock", &args.lock.address, issuer).await?;
    let forced = on_any!(open(address).await?, store => shut_out(&locks, store, &resource).await?);
    let said = match (&forced, args.json) {
        (ForceReleased::Ended { holder, revocation }, true) => json!({
            "released": true, "token": holder.token, "revocation": revocation,
        })
        .to_string(),
        (ForceReleased::NotHeld, true) => json!({ "released": false }).to_string(),
        (ForceReleased::Ended { holder, revocation }, false) => format!(
            "the lease of \"{resource}\" with token {} has ended; the store takes tokens above \
             {revocation}",
            holder.token
        ),
        (ForceReleased::NotHeld, false) => {
            format!("\"{resource}\" is free; its last holder is shut out of the store")
        }
    };
    Console::Stdout.line(said);
    Ok(())
}

async fn shut_out<DB: Dialect>(
    locks: &LockManager,
    store: FencedStore<DB>,
    resource: &ResourceName,
) -> Result<ForceReleased, Failure> {
    check_store(locks, &store, resource).await?;
    let protected = FencedLocks::new(locks.clone(), store);
    let forced = protected.force_release(resource).await;
    forced.map_err(|error| match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::WaitTimeout => {
            Failure::NotAsTold(format!(
                "\"{resource}\" was free, but it cannot be acquired yet, so its last holder is \
                 NOT shut out: look with `inspect`, then run it again"
            ))
        }
        FencedLockError::Lock(error) => lost(&error),
        FencedLockError::Store(error) => store_error::half_way(
            "the lease has ended, but the holder is NOT yet shut out of the store; look with \
             `inspect`, then run it again",
            &error,
        ),
        error => Failure::ServerLost(error.to_string()),
    })
}

/// Checks that this is the right store before a holder loses its lease.
async fn check_store<DB: Dialect>(
    locks: &LockManager,
    store: &FencedStore<DB>,
    resource: &ResourceName,
) -> Result<(), Failure> {
    let mark = store.high_water(resource).await;
    let mark = mark.map_err(|error| store_error::of_store(&error))?;
    match mark.filter(|mark| mark.issuer() != locks.issuer()) {
        None => Ok(()),
        Some(mark) => Err(Failure::Usage(format!(
            "the store takes tokens of \"{}\" and not of \"{}\": name the lock service as its \
             users do, with --issuer",
            mark.issuer(),
            locks.issuer(),
        ))),
    }
}

fn as_json(resource: &ResourceName, inspection: &Inspection) -> Value {
    let holder = inspection.holder.as_ref().map(|holder| {
        json!({
            "fingerprint": holder.fingerprint,
            "token": holder.token,
            "remaining_ms": millis(holder.remaining),
            "metadata": holder.metadata.as_ref().map(ToString::to_string),
        })
    });
    json!({ "resource": resource, "holder": holder, "waiters": inspection.waiters })
}

fn in_words(resource: &ResourceName, inspection: &Inspection) -> String {
    let holder = match &inspection.holder {
        None => "free".to_owned(),
        Some(HolderView {
            fingerprint,
            token,
            remaining,
            metadata,
            ..
        }) => {
            let note = metadata.as_ref().map(|note| format!(" ({note})"));
            let left = seconds(millis(*remaining));
            format!(
                "#{fingerprint}{}, token {token}, {left} left",
                note.unwrap_or_default()
            )
        }
    };
    let waiters = inspection.waiters.filter(|waiters| *waiters > 0);
    let waiters = waiters.map(|waiters| format!(", {waiters} waiting"));
    format!("{resource}: {holder}{}", waiters.unwrap_or_default())
}

fn lost(error: &lock_core::Error) -> Failure {
    match error.kind() {
        // The service works, but does not support this.
        ErrorKind::Unsupported => Failure::Usage(error.to_string()),
        _ => Failure::ServerLost(error.to_string()),
    }
}
