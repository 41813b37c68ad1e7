//! What happened, in a form that is printed, drawn, saved and loaded again.

mod event;
mod exchange;
mod narration;
mod recorder;
mod tally;

pub(crate) use self::{
    event::{Act, ClientName, Event, Forgery, What},
    exchange::{Exchange, ExchangeId, Message},
    narration::seconds,
    recorder::{Recorder, Recording},
    tally::Tally,
};
