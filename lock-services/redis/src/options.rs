use std::time::Duration;

use lock_core::{
    Error,
    backend::support::connecting::{Settings, invalid},
};

/// The parameters that only Redis has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// The number of token counters over which resources are spread.
    pub(super) shards: u16,
    pub(super) replicas: Option<Replicas>,
}

/// The number of replicas that must have a grant, and the time within which they must have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replicas {
    pub(super) number: u32,
    pub(super) within: Duration,
}

impl Options {
    pub(super) fn take(settings: &mut Settings) -> Result<Self, Error> {
        let shards = settings.take_number("shards")?.unwrap_or(64);
        if !(1..=1024).contains(&shards) {
            return Err(invalid("there are 1 to 1024 shards"));
        }
        let number = settings.take_number("replicas")?;
        let within = settings.take_millis("replicas_ms")?;
        let replicas = match (number, within) {
            (None, None) => None,
            (Some(number), Some(within))
                if number > 0 && !within.is_zero() && within < settings.response_timeout =>
            {
                Some(Replicas { number, within })
            }
            _ => {
                return Err(invalid(
                    "give replicas, at least 1, together with replicas_ms, at least 1 and less \
                     than the response timeout",
                ));
            }
        };
        Ok(Self { shards, replicas })
    }
}
