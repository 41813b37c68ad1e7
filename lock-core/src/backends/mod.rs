//! The lock services. One directory each, a feature each.

#[cfg(any(feature = "memory", feature = "zookeeper"))]
mod ended;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(any(feature = "redis", feature = "zookeeper"))]
mod joint;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redlock")]
pub mod redlock;
#[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
mod setup;
#[cfg(any(feature = "etcd", feature = "redis"))]
mod tls_files;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

/// What all keys at a lock service begin with, unless its user says otherwise.
pub(crate) const PREFIX: &str = "palisade";
