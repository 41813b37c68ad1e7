//! What operators do to a store, and to a lock service.

mod locks;

use fenced_store::{
    Dialect, FencedStore,
    admin::{AdminError, Reset, Seal},
};
use serde_json::json;

pub(crate) use self::locks::{force_release, inspect, list};
use crate::{
    cli::{ResetArgs, SealArgs},
    console::Console,
    failure::Failure,
    ledger::{AnyStore, open},
};

/// Sets a mark by hand.
pub(crate) async fn reset_high_water(args: ResetArgs) -> Result<(), Failure> {
    if args.confirm != args.resource {
        return Err(Failure::Usage(format!(
            "--confirm {} is another resource than {}: nothing was changed",
            args.confirm, args.resource
        )));
    }
    let (resource, expected, reason) = (args.resource, args.expected, args.reason);
    let order = match (args.raise_to, args.lower_to) {
        (_, Some(to)) => Reset::lower(resource, expected, to, reason),
        (Some(to), None) => Reset::raise(resource, expected, to, reason),
        (None, None) => return Err(Failure::Usage("name --raise-to or --lower-to".to_owned())),
    };
    let order = order.map_err(|error| Failure::Usage(error.to_string()))?;
    match open(&args.store).await? {
        AnyStore::Postgres(store) => carry_out(&store, &order).await?,
        AnyStore::Sqlite(store) => carry_out(&store, &order).await?,
    }
    let (resource, from, to) = (order.resource(), order.expected(), order.to());
    Console::Stdout.line(if args.json {
        json!({ "resource": resource.as_str(), "from": from.get(), "to": to.get() }).to_string()
    } else {
        format!("the mark of \"{resource}\" was {from} and is {to}")
    });
    Ok(())
}

/// Hands a store over to another lock service.
pub(crate) async fn seal(args: SealArgs) -> Result<(), Failure> {
    if args.confirm != args.to {
        return Err(Failure::Usage(format!(
            "--confirm {} is another lock service than {}: nothing was changed",
            args.confirm, args.to
        )));
    }
    let order = Seal::new(args.from, args.to, args.above, args.reason)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let sealed = match open(&args.store).await? {
        AnyStore::Postgres(store) => store.admin().seal(&order, |_, _| ()).await,
        AnyStore::Sqlite(store) => store.admin().seal(&order, |_, _| ()).await,
    };
    let sealed = sealed.map_err(refused)?;
    Console::Stdout.line(if args.json {
        json!({ "issuer": order.to().as_str(), "sealed": sealed }).to_string()
    } else {
        format!(
            "the store takes tokens of \"{}\"; marks sealed: {sealed}",
            order.to()
        )
    });
    Ok(())
}

async fn carry_out<DB: Dialect>(store: &FencedStore<DB>, order: &Reset) -> Result<(), Failure> {
    store.admin().reset_high_water(order).await.map_err(refused)
}

/// The store stands elsewhere than the order says, or it failed.
fn refused(error: AdminError) -> Failure {
    match error {
        AdminError::NotAsExpected { .. } | AdminError::OtherIssuer { .. } => {
            Failure::NotAsTold(error.to_string())
        }
        _ => Failure::ServerLost(error.to_string()),
    }
}
