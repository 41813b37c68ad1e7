//! The operators' commands for a store and a lock service.

mod consent;
mod doctor;
mod forget;
mod jobs;
mod locks;
mod migrate;
mod progress;
mod redlock;
mod store;
mod store_error;

use fenced_store::{
    MySqlFencedStore, PgFencedStore, SqliteFencedStore,
    admin::{AdminError, Reset},
};
use lock_core::Plausibility;
use serde_json::json;

use self::store::{Operated, on_any, open};
pub(crate) use self::{
    doctor::{Heard, doctor},
    forget::forget_marks,
    jobs::jobs,
    locks::{force_release, inspect, list},
    migrate::migrate,
    redlock::redlock,
};
use crate::{
    address::Address,
    cli::{DatabaseKind, ResetArgs},
    console::Console,
    database::{self, Tables},
    failure::Failure,
};

/// Sets a mark by hand.
pub(crate) async fn reset_high_water(args: ResetArgs) -> Result<(), Failure> {
    let Some(resource) = args.resource else {
        return forget::lower_floor(args).await;
    };
    let (expected, reason) = (args.expected, args.reason);
    let (order, warning) = match (args.raise_to, args.lower_to) {
        (_, Some(to)) => (
            Reset::lower(resource, expected, to, reason),
            "EVERY HOLDER OF A GREATER TOKEN MAY CLAIM AND WRITE AGAIN.",
        ),
        (Some(to), None) => (
            Reset::raise(resource, expected, to, reason),
            "Its holder is shut out, and tokens up to there are refused permanently.",
        ),
        (None, None) => return Err(Failure::Usage("name --raise-to or --lower-to".to_owned())),
    };
    let order = order.map_err(wrong_way)?;
    let (resource, from, to) = (order.resource(), order.expected(), order.to());
    let address = &args.store.address;
    let what = format!("The mark of {resource} in {address} goes from {from} to {to}. {warning}");
    consent::ask(args.consent, what, resource.as_str()).await?;
    on_any!(open(address).await?, store => {
        let store = store.plausibility(plausibility(args.even_if_implausible));
        store.admin().reset_high_water(&order).await.map_err(refused)?;
    });
    Console::Stdout.line(if args.json {
        json!({ "resource": resource.as_str(), "from": from.get(), "to": to.get() }).to_string()
    } else {
        format!("the mark of \"{resource}\" was {from} and is {to}")
    });
    Ok(())
}

/// Prints the SQL that creates the tables of a store.
pub(crate) fn print_migrations(dialect: DatabaseKind) {
    let script = match dialect {
        DatabaseKind::Postgres => PgFencedStore::migration_script(),
        DatabaseKind::Mysql => MySqlFencedStore::migration_script(),
        DatabaseKind::Sqlite => SqliteFencedStore::migration_script(),
    };
    Console::Stdout.line(script.trim_end());
}

/// Creates the tables of a gateway and of its store.
pub(crate) async fn apply_migrations(address: Address) -> Result<(), Failure> {
    database::open(&address, Tables::OfGateway).await?;
    Console::Stdout.line(format!("{address} has all tables of this version"));
    Ok(())
}

/// The failure, with the options of the command line.
fn wrong_way(error: AdminError) -> Failure {
    Failure::Usage(match error {
        AdminError::NotARaise { expected, to, .. } => {
            format!("{to} is not above {expected}: --lower-to lowers a mark")
        }
        AdminError::NotALowering { expected, to, .. } => {
            format!("{to} is not below {expected}: --raise-to raises a mark")
        }
        other => other.to_string(),
    })
}

fn plausibility(even_if_implausible: bool) -> Plausibility {
    if even_if_implausible {
        return Plausibility::unchecked();
    }
    Plausibility::by_the_clock()
}

/// Translates an error: the store is not as the order expects, or it failed.
fn refused(error: AdminError) -> Failure {
    match error {
        AdminError::Implausible { .. } => Failure::Usage(format!(
            "{error}; if you want this, add --even-if-implausible"
        )),
        AdminError::Store(error) => store_error::of_store(&error),
        _ => Failure::NotAsTold(error.to_string()),
    }
}
