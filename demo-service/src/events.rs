//! The events of a scenario, in a form that can be printed, drawn, saved and loaded.

mod event;
mod exchange;
mod narration;
mod recorder;
mod tally;

pub(crate) use self::{
    event::{Act, ClientName, Event, Story, What},
    exchange::{Exchange, ExchangeId, Message},
    recorder::{Heading, Recorder, Recording},
    tally::Tally,
};
