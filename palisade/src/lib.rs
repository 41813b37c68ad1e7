#![doc = include_str!("../README.md")]
#![doc = include_str!("types.md")]
#![forbid(unsafe_code)]

mod connect;
#[cfg(feature = "postgres")]
mod one_database;
mod settings;

#[cfg(feature = "http")]
pub use fenced_http as http;
#[cfg(feature = "store")]
pub use fenced_store as store;
pub use lock_core::*;
#[cfg(feature = "cohort")]
pub use palisade_cohort::Cohort;
#[cfg(feature = "etcd")]
pub use palisade_etcd as etcd;
#[cfg(feature = "postgres")]
pub use palisade_postgres as postgres;
#[cfg(feature = "redis")]
pub use palisade_redis as redis;
#[cfg(feature = "redlock")]
pub use palisade_redis::redlock;
#[cfg(feature = "zookeeper")]
pub use palisade_zookeeper as zookeeper;

pub use self::connect::{Connect, connect};
#[cfg(feature = "postgres")]
pub use self::one_database::one_database;
