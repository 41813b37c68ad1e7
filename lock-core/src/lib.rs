#![cfg_attr(feature = "redis", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "redis"), doc = "Leases with fencing tokens.")]
#![forbid(unsafe_code)]

mod backend;
mod backends;
mod capabilities;
mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(any(feature = "conformance", feature = "test-util"))]
#[cfg_attr(
    not(feature = "test-util"),
    allow(dead_code, unreachable_pub, reason = "public in `test_util`")
)]
mod dropped;
mod endings;
mod error;
mod floor;
mod holder;
mod issuer;
mod lease;
mod manager;
mod metadata;
pub mod metric;
mod resource;
mod sequencer;
#[cfg(feature = "test-util")]
pub mod test_util;
mod token;
mod ttl;
mod unpoisoned;
mod wait;

#[cfg(feature = "etcd")]
pub use self::backends::etcd;
#[cfg(feature = "memory")]
pub use self::backends::memory;
#[cfg(feature = "redis")]
pub use self::backends::redis;
#[cfg(feature = "redlock")]
pub use self::backends::redlock;
#[cfg(feature = "zookeeper")]
pub use self::backends::zookeeper;
pub use self::{
    backend::{
        AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, Forced, HolderView, Inspection,
        InvalidAttemptId, Listed, LockBackend, Released, RenewRequest, Renewed, Upkeep, Wait,
    },
    capabilities::{Capabilities, Extension, Fairness, Fencing, Waking},
    clock::{Clock, Moment, SystemClock},
    error::{Error, ErrorKind, Operation, Outcome},
    floor::InitialToken,
    holder::{Holder, InvalidHolder},
    issuer::Issuer,
    lease::{Grant, Lease},
    manager::{
        Acquire, AcquireAll, AcquireTogether, DetachedLease, ForceReleased, LeaseGuard,
        LeaseGuards, LockManager, LockManagerBuilder, Losses, Lost, LostReason, Owner, Stats,
    },
    metadata::{InvalidMetadata, Metadata},
    resource::{InvalidName, ResourceName},
    sequencer::Sequencer,
    token::{FencingToken, InvalidToken},
    ttl::{InvalidTtl, Ttl},
    wait::{Cohort, Jitter, Pauses, RetryPolicy},
};
