//! The operators' commands for the nodes of a Redlock lock service.

use std::sync::Arc;

use lock_core::{Error, ErrorKind, backend::TokioRuntime};
use palisade::redlock::{HealProgress, RedlockNodes};
use palisade_gateway::wire::millis;
use serde_json::json;

use super::consent;
use crate::{
    cli::{ProvisionArgs, Redlock, RedlockNodeArgs, RedlockNodesArgs},
    console::Console,
    failure::Failure,
};

/// Carries out the command, and prints the state of the nodes afterwards.
pub(crate) async fn redlock(command: Redlock) -> Result<(), Failure> {
    match command {
        Redlock::Status(args) => {
            let nodes = open(&args)?;
            let serving = tell(&nodes, args.json).await;
            let (serving, all) = serving;
            if serving <= all / 2 {
                let why = format!("{serving} of {all} nodes serve: no lock is granted");
                return Err(Failure::NotAsTold(why));
            }
            Ok(())
        }
        Redlock::Provision(args) => provision(args).await,
        Redlock::Heal(args) => heal(args).await,
        Redlock::Retire(args) => {
            let what = format!("{} is out of service from now on, PERMANENTLY.", args.node);
            let nodes = agreed(&args, what).await?;
            nodes.retire(&args.node).await.map_err(failed)?;
            tell(&nodes, args.nodes.json).await;
            Ok(())
        }
    }
}

async fn provision(args: ProvisionArgs) -> Result<(), Failure> {
    let nodes = open(&args.nodes)?;
    let what =
        "These nodes begin to issue tokens. THEY MUST BE NEW: nodes that have issued tokens \
                and lost them would issue them again, unless they begin --above all of them."
            .to_owned();
    consent::ask(args.consent, what, "provision").await?;
    let provisioned = nodes.provision(args.longest_ttl, args.above).await;
    provisioned.map_err(failed)?;
    tell(&nodes, args.nodes.json).await;
    Ok(())
}

async fn heal(args: RedlockNodeArgs) -> Result<(), Failure> {
    let what = format!(
        "{} is taken in anew, unless it serves. WHAT IT STILL HAS OF LEASES AND COUNTERS IS \
         DELETED.",
        args.node
    );
    let as_json = args.nodes.json;
    let nodes = agreed(&args, what).await?;
    let show = |progress| show(progress, as_json);
    nodes.heal(&args.node, show).await.map_err(failed)?;
    tell(&nodes, as_json).await;
    Ok(())
}

/// Prints a line on stderr about the progress of the healing of a node.
fn show(progress: HealProgress, as_json: bool) {
    let (words, object) = match progress {
        HealProgress::Counters { seen, made, .. } => (
            format!("{seen} counters read, {made} rebuilt"),
            json!({ "counters_seen": seen, "counters_made": made }),
        ),
        HealProgress::Quiet(left) => (
            format!("it may have forgotten leases, and is quiet for {left:?}"),
            json!({ "quiet_ms": millis(left) }),
        ),
        _ => return,
    };
    if as_json {
        Console::Stderr.line(object);
    } else {
        Console::Stderr.line(words);
    }
}

async fn agreed(args: &RedlockNodeArgs, what: String) -> Result<RedlockNodes, Failure> {
    let nodes = open(&args.nodes)?;
    consent::ask(args.consent, what, &args.node).await?;
    Ok(nodes)
}

fn open(args: &RedlockNodesArgs) -> Result<RedlockNodes, Failure> {
    RedlockNodes::new(args.address.secret(), Arc::new(TokioRuntime)).map_err(failed)
}

/// Prints the state of the nodes. Returns the number of nodes that serve, and the number of all
/// nodes.
async fn tell(nodes: &RedlockNodes, as_json: bool) -> (usize, usize) {
    let status = nodes.status().await;
    let serving = status.iter().filter(|node| node.state.serves()).count();
    if as_json {
        let nodes = status.iter().map(|node| {
            json!({
                "address": node.address,
                "state": node.state.word(),
                "serves": node.state.serves(),
                "detail": node.state.to_string(),
            })
        });
        Console::Stdout.line(json!({ "nodes": nodes.collect::<Vec<_>>() }));
    } else {
        for node in &status {
            Console::Stdout.line(format!("{}: {}", node.address, node.state));
        }
    }
    (serving, status.len())
}

fn failed(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::Unsupported => Failure::Usage(error.to_string()),
        ErrorKind::Unavailable => Failure::ServerLost(error.to_string()),
        _ => Failure::NotAsTold(error.to_string()),
    }
}
