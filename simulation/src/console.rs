//! Progress and results, as text and as JSON.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::json;
use simulation::Totals;

/// A situation that has come up too rarely: its name, its count, and the least count.
pub(crate) type Missing = (&'static str, u64, u64);

/// The second in which the last progress line was written.
static LAST: AtomicU64 = AtomicU64::new(0);

/// One line a second on a terminal, one a minute elsewhere.
pub(crate) fn progress(totals: &Totals, time: Duration) {
    let is_terminal = io::stderr().is_terminal();
    let step = time.as_secs() / if is_terminal { 1 } else { 60 };
    if LAST.swap(step, Ordering::Relaxed) == step {
        return;
    }
    let (begin, end) = if is_terminal {
        ("\r\x1b[K", "")
    } else {
        ("", "\n")
    };
    let line = totals.line(time);
    let _unseen = write!(io::stderr(), "{begin}{line}{end}");
}

/// Shows the sums. `rest` is how the last sentence goes on.
pub(crate) fn summary(totals: &Totals, time: Duration, missing: &[Missing], rest: &str) {
    if io::stderr().is_terminal() {
        eprintln!();
    }
    say!("{}", totals.line(time));
    say!(
        "{} of them over a lock service that keeps its state and its clock, {} with a pause beyond \
         a lease; {:.1} s",
        totals.sound,
        totals.paused,
        time.as_secs_f64(),
    );
    for (name, count) in totals.coverage.counts() {
        say!("{count:10} {name}");
    }
    say!(
        "{:10} different decisions of acquisitions",
        totals.coverage.machine().len()
    );
    for (name, count, least) in missing {
        say!("too rare: {name} came up {count} times, at least {least} are needed");
    }
    if missing.is_empty() {
        say!("every promise was kept{rest}");
    }
}

pub(crate) fn json(first: u64, totals: &Totals, time: Duration, missing: &[Missing]) {
    let coverage: serde_json::Map<_, _> = totals
        .coverage
        .counts()
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect();
    let machine: serde_json::Map<_, _> = totals
        .coverage
        .machine()
        .iter()
        .map(|(decision, count)| (decision.to_string(), (*count).into()))
        .collect();
    let result = json!({
        "first_seed": first,
        "schedules": totals.schedules,
        "seconds": time.as_secs_f64(),
        "sound": totals.sound,
        "paused_beyond_lease": totals.paused,
        "unfenced_lost": totals.unfenced_lost,
        "writes_refused": totals.refused,
        "leases_taken_over": totals.takeovers,
        "coverage": coverage,
        "machine": machine,
        "too_rare": missing.iter().map(|(name, ..)| name).collect::<Vec<_>>(),
    });
    say!("{result}");
}
