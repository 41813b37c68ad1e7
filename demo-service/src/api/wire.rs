//! The JSON of accounts and jobs, for both of its ends.

use serde::{Deserialize, Serialize};

/// The request header that tells the recorder which client of the scenario speaks.
pub(crate) const CLIENT_HEADER: &str = "demo-client";

/// The new balance of an account.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BalanceBody {
    pub(crate) balance: i64,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AccountBody {
    pub(crate) id: String,
    pub(crate) balance: i64,
}

/// The amount that a job adds to its account.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunBody {
    pub(crate) add: i64,
}

/// The outcome for a slot of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RanBody {
    /// False if it was done before.
    pub(crate) ran: bool,
    /// Of the account, afterwards.
    pub(crate) balance: i64,
}
