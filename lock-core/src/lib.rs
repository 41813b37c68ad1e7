#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[expect(
    unused_extern_crates,
    reason = "for links in the documentation of `lease_settings!`"
)]
extern crate self as lock_core;

mod acquisition;
pub mod backend;
mod boxed;
mod capabilities;
mod error;
mod floor;
mod holder;
mod issuer;
mod lease;
mod manager;
pub mod memory;
mod metadata;
mod plausibility;
mod resource;
mod retry_policy;
mod runtime;
mod sequencer;
mod token;
mod ttl;
mod unpoisoned;

pub(crate) use self::backend::{
    AcquireRequest, AttemptId, AttemptRef, BoxFuture, Forced, Grant, Lease, LockBackend,
    LockService, Moment, Pauses, RenewRequest, Renewed, Runtime, TokioRuntime, Upkeep, Wait,
    support,
};
pub use self::{
    backend::answer::{Attempt, HolderView, Inspection, Listed, Released},
    capabilities::{Capabilities, Extension, Fairness, Fencing, TokenScale, Waking},
    error::{Error, ErrorKind, Operation, Outcome},
    floor::InitialToken,
    holder::{Holder, InvalidHolder},
    issuer::Issuer,
    manager::{
        Acquire, AcquireAll, AcquireTogether, DetachedLease, ForceReleased, Lead, LeaseGuard,
        LeaseGuards, LockManager, LockManagerBuilder, Lost, LostReason, Owner, Stats, Term,
    },
    metadata::{InvalidMetadata, Metadata},
    plausibility::Plausibility,
    resource::{InvalidName, ResourceName},
    retry_policy::{Jitter, RetryPolicy},
    sequencer::Sequencer,
    token::{FencingToken, InvalidToken},
    ttl::{InvalidTtl, Ttl},
};
