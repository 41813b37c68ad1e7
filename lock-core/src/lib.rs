//! Leases with fencing tokens.
#![forbid(unsafe_code)]

mod backend;
mod capabilities;
mod clock;
mod error;
mod holder;
mod issuer;
mod lease;
mod resource;
mod sequencer;
mod token;
mod ttl;

pub use self::{
    backend::{
        AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, HolderView, Inspection,
        LockBackend, Released, RenewRequest, Renewed, Upkeep, Wait,
    },
    capabilities::{Capabilities, Fairness, Fencing, Waking},
    clock::{Clock, Moment, SystemClock},
    error::{Error, ErrorKind, Operation, Outcome},
    holder::{Holder, InvalidHolder},
    issuer::Issuer,
    lease::{Grant, Lease},
    resource::{InvalidName, ResourceName},
    sequencer::Sequencer,
    token::{FencingToken, InvalidToken},
    ttl::{InvalidTtl, Ttl},
};
