//! The store in memory, behind a network, and beside it somebody who sees what it does.

mod ledger;
mod watch;
mod wire;

pub(crate) use self::{ledger::Ledger, watch::Watch, wire::StoreWire};
