//! The lock services. One directory each, a feature each.

#[cfg(any(feature = "memory", feature = "zookeeper"))]
mod ended;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redlock")]
pub mod redlock;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;
