//! The store in memory, behind a network, with an observer that sees its steps.

mod ledger;
mod watch;
mod wire;

pub(crate) use self::{ledger::Ledger, watch::Watch, wire::StoreWire};
