use lock_core::backend::Moment;

use crate::{
    judge::act::{Act, Stored},
    service,
};

/// The events of a schedule, in order, for those who draw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(pub(crate) Vec<(Moment, Happened)>);

/// One thing that has happened.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    /// A client has done something.
    Act(u32, Act),
    /// The store has done something.
    Stored(Stored),
    /// The lock service has done something.
    Served(service::Event),
}
