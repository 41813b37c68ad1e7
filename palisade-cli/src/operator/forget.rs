//! Forgets the marks of idle resources, and lowers the floor that replaces them.

use std::time::Duration;

use fenced_store::{
    Dialect, FencedLocks, FencedStore, Forgotten,
    admin::{AdminError, LowerFloor},
};
use lock_core::{FencingToken, LockManager};
use serde_json::json;

use super::{
    consent,
    locks::connect,
    refused,
    store::{Operated, on_any, open},
    wrong_way,
};
use crate::{
    cli::{ForgetMarksArgs, ResetArgs},
    console::Console,
    failure::{Failure, with_sources},
};

/// Forgets idle marks, and prints the floor.
pub(crate) async fn forget_marks(args: ForgetMarksArgs) -> Result<(), Failure> {
    let locks = connect("lock", &args.lock.address, args.issuer.name.as_ref()).await?;
    let (forgotten, floor) = on_any!(open(&args.store.address).await?, store => {
        forget(&locks, store, args.older_than).await?
    });
    Console::Stdout.line(match (args.json, floor) {
        (true, floor) => json!({
            "marks": forgotten.marks, "leases": forgotten.leases, "floor": floor,
        })
        .to_string(),
        (false, None) => "no mark was ever forgotten, there is no floor".to_owned(),
        (false, Some(floor)) => format!(
            "{} marks and {} rows of leases are forgotten; the floor is {floor}",
            forgotten.marks, forgotten.leases
        ),
    });
    Ok(())
}

async fn forget<DB: Dialect>(
    locks: &LockManager,
    store: FencedStore<DB>,
    older_than: Duration,
) -> Result<(Forgotten, Option<FencingToken>), Failure> {
    let current = store.admin().issuer().await.map_err(failed)?;
    if let Some(current) = current.filter(|current| current != locks.issuer()) {
        return Err(Failure::NotAsTold(format!(
            "the store takes tokens of \"{current}\", not of \"{}\": nothing was forgotten, say \
             --lock and --issuer of that one",
            locks.issuer()
        )));
    }
    let protected = FencedLocks::new(locks.clone(), store);
    let forgotten = protected.forget_marks(older_than).await.map_err(failed)?;
    let floor = protected.store().admin().floor().await.map_err(failed)?;
    Ok((forgotten, floor))
}

fn failed(error: AdminError) -> Failure {
    match error {
        AdminError::LockService { source, .. } => Failure::ServerLost(with_sources(&source)),
        error => refused(error),
    }
}

/// Lowers the floor.
pub(super) async fn lower_floor(args: ResetArgs) -> Result<(), Failure> {
    let Some(to) = args.lower_to else {
        return Err(Failure::Usage(
            "a floor can only be lowered: use --lower-to".to_owned(),
        ));
    };
    let order = LowerFloor::new(args.expected, Some(to), args.reason).map_err(wrong_way)?;
    let (from, address) = (args.expected, &args.store.address);
    let what = format!(
        "The floor of {address} goes from {from} to {to}. EVERY HOLDER OF A GREATER TOKEN MAY \
         CLAIM RESOURCES WITHOUT A MARK AND WRITE AGAIN."
    );
    consent::ask(args.consent, what, "floor").await?;
    on_any!(open(address).await?, store => {
        store.admin().lower_floor(&order).await.map_err(refused)?;
    });
    Console::Stdout.line(if args.json {
        json!({ "floor": true, "from": from.get(), "to": to.get() }).to_string()
    } else {
        format!("the floor was {from} and is {to}")
    });
    Ok(())
}
