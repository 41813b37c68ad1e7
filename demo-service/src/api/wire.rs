//! The JSON of accounts and jobs, for the server and for clients.

use serde::{Deserialize, Serialize};

/// The request header with the name of the scenario's client, for the recorder.
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
    /// False if the job was done before.
    pub(crate) ran: bool,
    /// The balance of the account, afterwards.
    pub(crate) balance: i64,
}
