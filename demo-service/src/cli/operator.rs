use clap::Args;
use fenced_store::admin::Reason;
use lock_core::{FencingToken, Issuer, ResourceName};

use super::Lock;
use crate::address::Address;

/// What tells everything that is held.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) lock: Lock,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What tells who holds a resource.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) lock: Lock,
    /// The resource, such as `account:42`
    pub(crate) resource: ResourceName,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What ends the lease of a holder that hangs.
#[derive(Args, Debug)]
pub(crate) struct ForceReleaseArgs {
    #[command(flatten)]
    pub(crate) lock: Lock,
    /// Store: `sqlite:FILE` or `postgres://[user[:password]@]HOST[:PORT]/DATABASE`
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Address,
    /// The resource whose holder is to lose its lease
    pub(crate) resource: ResourceName,
    /// The resource once more, so that nobody loses a lease by mistake
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) confirm: ResourceName,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What sets a mark by hand.
#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    /// Store: `sqlite:FILE` or `postgres://[user[:password]@]HOST[:PORT]/DATABASE`
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Address,
    /// The resource whose mark is set
    pub(crate) resource: ResourceName,
    /// Where the mark stands now; if it stands elsewhere, nothing is changed
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected: FencingToken,
    /// Raise it to this token: its holder is shut out
    #[arg(long, value_name = "TOKEN", required_unless_present = "lower_to")]
    #[arg(conflicts_with = "lower_to")]
    pub(crate) raise_to: Option<FencingToken>,
    /// Lower it to this token: WHOEVER WAS EVER ISSUED A GREATER ONE MAY CLAIM AND WRITE AGAIN
    #[arg(long, value_name = "TOKEN")]
    pub(crate) lower_to: Option<FencingToken>,
    /// Why, for those who read the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Reason,
    /// The resource once more, so that no mark is set by mistake
    #[arg(long, value_name = "RESOURCE")]
    pub(crate) confirm: ResourceName,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What hands a store over to another lock service.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// Store: `sqlite:FILE` or `postgres://[user[:password]@]HOST[:PORT]/DATABASE`
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Address,
    /// Whose tokens were taken so far
    #[arg(long, value_name = "ISSUER")]
    pub(crate) from: Issuer,
    /// Whose tokens are taken from now on
    #[arg(long, value_name = "ISSUER")]
    pub(crate) to: Issuer,
    /// What its tokens have to be above: no token of the old service may be greater
    #[arg(long, value_name = "TOKEN")]
    pub(crate) above: FencingToken,
    /// Why, for those who read the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Reason,
    /// The new issuer once more, so that no store is handed over by mistake
    #[arg(long, value_name = "ISSUER")]
    pub(crate) confirm: Issuer,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
