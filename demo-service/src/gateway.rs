//! The lock gateway and the account API: HTTP in front of a lock service and a fenced store.
//!
//! It has no state of its own: all state is in the lock service and in the store, so several
//! gateways in front of the same two form one service.

mod accounts;
mod admin_token;
mod answer_stream;
mod app;
mod body;
mod caller;
mod connections;
mod edge;
mod error;
mod health;
mod idempotency;
mod jobs;
mod leases;
mod limits;
mod openapi;
mod operators;
mod own_name;
pub(crate) mod problems;
mod request_id;
mod router;
mod secrets;
mod server;
mod setup;
mod time_limit;
mod tokens;
mod under_way;
mod unfenced;
mod unread;
pub(crate) mod wire;
mod wiretap;
mod witness;

pub(crate) use self::{
    admin_token::AdminToken,
    limits::Limits,
    openapi::print_document,
    own_name::HostNames,
    server::{Gateway, connect, listen},
    setup::Setup,
};

use crate::events::Story;

/// The resource that protects an account.
pub(crate) fn account_resource(id: &str) -> String {
    format!("{ACCOUNT}{id}")
}

/// What the names of all such resources begin with.
const ACCOUNT: &str = "account:";

impl Story {
    /// The resource whose lease its clients take.
    pub(crate) fn resource(self, account: &str) -> String {
        match self {
            Self::Deposits => account_resource(account),
            Self::Jobs => job_resource(account),
        }
    }
}

/// The resource of a job that adds to the account of this name.
pub(crate) fn job_resource(id: &str) -> String {
    format!("{JOB}{id}")
}

/// What the names of all resources of jobs begin with.
const JOB: &str = "job:";
