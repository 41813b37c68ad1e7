//! The routes that the demo adds to a gateway: accounts and jobs, with a fence and without.

mod accounts;
mod app;
mod jobs;
mod openapi;
mod router;
mod unfenced;
pub(crate) mod wire;
mod wiretap;
mod witness;

use axum::http::StatusCode;
use fenced_http::ProblemType;

pub(crate) use self::{openapi::document, router::routes};
use crate::events::Story;

/// 404: there is no such account.
const ACCOUNT_UNKNOWN: ProblemType = ProblemType::new(
    "account-unknown",
    StatusCode::NOT_FOUND,
    "There is no such account",
);

/// 409: the live page plays one run at a time.
pub(crate) const RUN_UNDER_WAY: ProblemType =
    ProblemType::new("run-under-way", StatusCode::CONFLICT, "A run is under way");

/// The resource that protects an account.
pub(crate) fn account_resource(id: &str) -> String {
    format!("{ACCOUNT}{id}")
}

/// The prefix of the names of all such resources.
const ACCOUNT: &str = "account:";

impl Story {
    /// The resource whose lease the clients of the story acquire.
    pub(crate) fn resource(self, account: &str) -> String {
        match self {
            Self::Deposits => account_resource(account),
            Self::Jobs => job_resource(account),
        }
    }
}

/// The resource of a job that adds to the account of this name.
fn job_resource(id: &str) -> String {
    format!("{JOB}{id}")
}

/// The prefix of the names of all resources of jobs.
const JOB: &str = "job:";
