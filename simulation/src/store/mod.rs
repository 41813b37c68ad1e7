//! The store in memory, behind a network, and beside it somebody who sees what it does.

mod watch;
mod wire;

pub(crate) use self::{watch::Watch, wire::StoreWire};
