#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[expect(
    unused_extern_crates,
    reason = "for links in the documentation of `lease_settings!`"
)]
extern crate self as lock_core;

pub mod backend;
mod boxed;
mod capabilities;
mod clock;
mod error;
mod floor;
mod holder;
mod issuer;
mod lease;
mod manager;
pub mod memory;
mod metadata;
pub mod metric;
mod plausibility;
mod resource;
mod retry_policy;
mod sequencer;
pub mod support;
mod token;
mod ttl;
mod unpoisoned;

pub use self::{
    backend::{
        AcquireRequest, Attempt, AttemptId, AttemptRef, Forced, HolderView, Inspection,
        InvalidAttemptId, Listed, LockBackend, LockService, Released, RenewRequest, Renewed,
        Upkeep, Wait,
    },
    boxed::BoxFuture,
    capabilities::{Capabilities, Extension, Fairness, Fencing, Waking},
    clock::{Clock, Moment, SystemClock},
    error::{Error, ErrorKind, Operation, Outcome},
    floor::InitialToken,
    holder::{Holder, InvalidHolder},
    issuer::Issuer,
    lease::{Grant, Lease},
    manager::{
        Acquire, AcquireAll, AcquireTogether, Candidate, DetachedLease, ForceReleased, InTurn,
        Lead, LeaseGuard, LeaseGuards, LockManager, LockManagerBuilder, Lost, LostReason, Owner,
        Single, Stats, Term, TermGuard, Together,
    },
    metadata::{InvalidMetadata, Metadata},
    plausibility::Plausibility,
    resource::{InvalidName, ResourceName},
    retry_policy::{Jitter, Pauses, RetryPolicy},
    sequencer::Sequencer,
    token::{FencingToken, InvalidToken},
    ttl::{InvalidTtl, Ttl},
};
