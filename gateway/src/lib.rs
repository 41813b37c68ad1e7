//! A lock gateway: HTTP in front of a lock service and a fenced store.
//!
//! Clients in any language acquire, renew and release leases at the gateway; operators see the
//! holders. The gateway has no state of its own: all state is in the lock service and in the store.
//! So several gateways in front of the same lock service and store form one service.
//!
//! [`Gateway`] has a router that a service may mount beside endpoints of its own, [`Tokens`] that
//! guard these endpoints, and a server for both. The program `palisade serve` runs one.
#![forbid(unsafe_code)]

mod admin_token;
mod answer_stream;
mod app;
mod body;
mod caller;
mod connections;
mod counted;
mod edge;
mod error;
mod forgetting;
mod gateway;
mod health;
mod idempotency;
mod keys;
mod leases;
mod limits;
mod openapi;
mod operators;
mod own_name;
pub mod problems;
mod request_id;
mod router;
mod secrets;
mod setup;
mod time_limit;
mod tokens;
#[cfg(feature = "otel")]
mod trace;
mod under_way;
mod unread;
pub mod wire;

pub use self::{
    admin_token::{AdminToken, WeakToken},
    body::{Body, Segment},
    counted::count,
    error::ApiError,
    gateway::Gateway,
    keys::KeyTable,
    limits::Limits,
    openapi::{document, documentation},
    own_name::HostNames,
    setup::Setup,
    time_limit::{GiveUp, GivingUp, TimeLimit},
    tokens::Tokens,
};
