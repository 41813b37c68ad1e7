//! The section of the page that shows the cost of fencing.

use std::fmt::{self, Write};

use super::picture::{Bar, bars, number};
use crate::store::{
    cost::{CLIENTS, Cost, NETWORKS_MS},
    protections::{ALTERNATIVES, PROTECTIONS, Protection},
};

const HEAD: &str = "
## What fencing costs

One client updates one row on Postgres, or each of 32 clients updates a row and a resource of its
own. The commit is on disk. The numbers are the median times of one write, in microseconds. The
network is a relay that holds each message for half of a round trip. Servers have one core, and
clients and relay have the other one. All rows are of one run, in which they took turns.

";

const TAIL: &str = "
- Each client knows the version of its row, or holds its grant, from before. A version column
  protects one row. It notices that another client has written since, but it does not know whose
  turn it is. The two locks exclude others while their transaction lasts. They do not know a holder
  that was paused before it began.
- A fenced update is one message, like any update, because the server checks the grant when it
  reads the arguments. A fenced transaction is three messages, like any transaction, because the
  check is in the message that begins it. On a network the messages are the cost. (By default a
  sqlx pool sends one more message before each use, with and without a fence. It did not here.)
- With 32 clients and no network the processor of the server is the limit, and the check is work.
  It takes 90,000 instructions, and an update takes 100,000. Finding the mark takes 26,000 of them,
  the function around it 16,000, the note for triggers of protected tables 13,000, the digest of
  the holder 9,000, the lock of the resource 5,000, and the argument the rest. The transaction also
  pays for a `CALL` that is parsed anew each time.
";

/// Writes the section.
pub(super) fn section(page: &mut String, costs: &[Cost]) -> fmt::Result {
    page.push_str(HEAD);
    page.push_str("![A protected write over a network](bench-fence.svg)\n\n| | messages |");
    for (network_ms, clients) in places() {
        let network = match network_ms {
            0 => "no network".to_owned(),
            ms => format!("{ms} ms"),
        };
        let clients = if clients == 1 {
            "alone".to_owned()
        } else {
            clients.to_string()
        };
        write!(page, " {network}, {clients} |")?;
    }
    page.push_str("\n|---|---:|---:|---:|---:|---:|---:|---:|\n");
    for protection in PROTECTIONS {
        let name = match protection.is_ours() {
            true => format!("**{}**", name(protection)),
            false => name(protection).to_owned(),
        };
        let time = |place| time(costs, place, protection).map_or_else(String::new, number);
        row(page, &name, &protection.messages().to_string(), time)?;
    }
    for (protection, others) in [
        (Protection::FencedStatement, ALTERNATIVES.as_slice()),
        (Protection::FencedTransaction, &ALTERNATIVES[1..]),
    ] {
        let name = format!("{} / best of {}", name(protection), names(others));
        let ratio = |place| {
            let best = others.iter().filter_map(|other| time(costs, place, *other));
            let best = best.fold(f64::INFINITY, f64::min);
            let ours = time(costs, place, protection);
            ours.map_or_else(String::new, |ours| format!("{:.2}", ours / best))
        };
        row(page, &name, "", ratio)?;
    }
    page.push_str(TAIL);
    Ok(())
}

/// The picture for one client behind a network with a round trip of one millisecond.
pub(super) fn picture(costs: &[Cost]) -> String {
    let shown = PROTECTIONS.into_iter().filter_map(|protection| {
        Some(Bar {
            label: name(protection).to_owned(),
            parts: vec![time(costs, (1, 1), protection)?],
            is_ours: protection.is_ours(),
        })
    });
    bars(
        "A write over a network with round trips of 1 ms, in microseconds",
        "shorter is better",
        &shown.collect::<Vec<_>>(),
    )
}

/// Where it is measured: the round trip of the network, and the number of clients.
type Place = (u32, u32);

fn places() -> impl Iterator<Item = Place> {
    let with_clients = |network_ms| CLIENTS.map(|clients| (network_ms, clients));
    NETWORKS_MS.into_iter().flat_map(with_clients)
}

fn time(costs: &[Cost], (network_ms, clients): Place, protection: Protection) -> Option<f64> {
    let is_it = |cost: &&Cost| {
        (cost.network_ms, cost.clients, cost.protection) == (network_ms, clients, protection)
    };
    costs.iter().find(is_it).map(|cost| cost.median_us)
}

fn row(
    page: &mut String,
    name: &str,
    messages: &str,
    cell: impl Fn(Place) -> String,
) -> fmt::Result {
    write!(page, "| {name} | {messages} |")?;
    for place in places() {
        write!(page, " {} |", cell(place))?;
    }
    page.push('\n');
    Ok(())
}

const fn name(protection: Protection) -> &'static str {
    match protection {
        Protection::EmptyStatement => "SELECT 1, no write",
        Protection::PlainStatement => "update",
        Protection::VersionColumn => "version column",
        Protection::FencedStatement => "fenced update",
        Protection::PlainTransaction => "transaction",
        Protection::FencedTransaction => "fenced transaction",
        Protection::ForUpdate => "FOR UPDATE",
        Protection::AdvisoryLock => "advisory lock",
    }
}

fn names(protections: &[Protection]) -> String {
    let names: Vec<_> = protections.iter().copied().map(name).collect();
    names.join(", ")
}
