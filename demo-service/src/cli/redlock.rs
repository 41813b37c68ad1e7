use std::time::Duration;

use clap::{Args, Subcommand};
use lock_core::{FencingToken, Ttl};

use super::{Consent, duration};
use crate::address::Address;

/// What operators ask of the nodes of a Redlock lock service.
#[derive(Debug, Subcommand)]
pub(crate) enum Redlock {
    /// Tell what each node is. Exit code 1 if fewer than a majority serve.
    Status(RedlockNodesArgs),
    /// Bring new nodes into service, all of them at once.
    ///
    /// If all of them serve already, nothing is done; exit code 1 if they are not what is asked
    /// for. Exit code 1 if one of them is neither new nor
    /// prepared: if it serves, heal the others instead. If most have lost their state, empty all
    /// and provision them --above the greatest mark of the stores.
    Provision(ProvisionArgs),
    /// Take a node in that lost its state, or is new among nodes that serve, and make it whole.
    ///
    /// What it still has is deleted, and it takes part from then on. All counters of the others are
    /// made anew, and when the longest lease is over it serves as they do; progress is on stderr.
    /// It may be interrupted and run again. Exit code 1 if it is retired, or too few others know
    /// what was issued.
    Heal(HealArgs),
    /// Take a node out of service for good.
    ///
    /// To replace it: retire it, heal the new node under a URL that names it instead, and then hand
    /// out that URL.
    Retire(RedlockNodeArgs),
}

/// Which nodes there are.
#[derive(Args, Debug)]
pub(crate) struct RedlockNodesArgs {
    /// Lock service: `redlock+redis://[user:password@]HOST:PORT,HOST:PORT,HOST:PORT[/DB]`
    #[arg(id = "lock", long, value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    pub(crate) address: Address,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What brings nodes into service.
#[derive(Args, Debug)]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) nodes: RedlockNodesArgs,
    /// The longest lease that may be asked for, and for how long a healed node grants none
    #[arg(long, default_value = "60s", value_parser = ttl, value_name = "DURATION")]
    pub(crate) longest_ttl: Ttl,
    /// The greatest token that any store has seen, if these nodes or others have issued some
    #[arg(long, value_name = "TOKEN")]
    pub(crate) above: Option<FencingToken>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// How a node is healed.
#[derive(Args, Debug)]
pub(crate) struct HealArgs {
    #[command(flatten)]
    pub(crate) node: RedlockNodeArgs,
    /// Take it in and do not wait: what the others have no counter for is refused by it until heal
    /// is run again
    #[arg(long)]
    pub(crate) take_in_only: bool,
}

/// One of the nodes.
#[derive(Args, Debug)]
pub(crate) struct RedlockNodeArgs {
    #[command(flatten)]
    pub(crate) nodes: RedlockNodesArgs,
    /// The node, as the URL has it: HOST:PORT
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

fn ttl(text: &str) -> Result<Ttl, String> {
    let time: Duration = duration(text)?;
    Ttl::new(time).map_err(|error| error.to_string())
}
