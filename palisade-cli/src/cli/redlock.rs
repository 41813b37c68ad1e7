use std::time::Duration;

use clap::{Args, Subcommand};
use lock_core::{FencingToken, Ttl};

use super::Consent;
use crate::{address::Address, duration::parse as duration};

/// Commands about the nodes of a Redlock lock service.
#[derive(Debug, Subcommand)]
pub(crate) enum Redlock {
    /// Show the state of each node. Exit code 1 if less than a majority of them serve.
    Status(RedlockNodesArgs),
    /// Bring new nodes into service, all of them at once.
    ///
    /// If all nodes serve already, nothing is done, and the exit code is 1 if they do not match the
    /// arguments. The exit code is also 1 if a node is neither new nor prepared: if that node
    /// serves, heal the others instead. If most nodes have lost their state, empty all of them and
    /// provision them --above the greatest mark of the stores.
    Provision(ProvisionArgs),
    /// Heal a node that has lost its state, or that is new among serving nodes.
    ///
    /// Deletes the data that the node still has, and rebuilds all counters of the other nodes on
    /// it. After the time of the longest lease the node serves as the others do. The progress is
    /// printed on stderr. The command may be interrupted and run again. Exit code 1 if the node is
    /// retired, or if too few other nodes know which tokens were issued.
    Heal(RedlockNodeArgs),
    /// Take a node out of service permanently.
    ///
    /// To replace a node, retire it. Then heal the new node under a URL that names the new node in
    /// its place, and give that URL to the clients.
    Retire(RedlockNodeArgs),
}

/// The nodes.
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

/// Arguments for bringing nodes into service.
#[derive(Args, Debug)]
pub(crate) struct ProvisionArgs {
    #[command(flatten)]
    pub(crate) nodes: RedlockNodesArgs,
    /// The longest lease that clients may ask for; a healed node grants no lease for this time
    #[arg(long, default_value = "60s", value_parser = ttl, value_name = "DURATION")]
    pub(crate) longest_ttl: Ttl,
    /// The greatest token that any store has seen, if these or other nodes have issued tokens
    /// before
    #[arg(long, value_name = "TOKEN")]
    pub(crate) above: Option<FencingToken>,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// One of the nodes.
#[derive(Args, Debug)]
pub(crate) struct RedlockNodeArgs {
    #[command(flatten)]
    pub(crate) nodes: RedlockNodesArgs,
    /// The node, as in the URL: HOST:PORT
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

fn ttl(text: &str) -> Result<Ttl, String> {
    let time: Duration = duration(text)?;
    Ttl::new(time).map_err(|error| error.to_string())
}
