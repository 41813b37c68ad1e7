//! Open files: every connection of the gateway needs two.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open files that are not connections of clients: databases, the lock service, the page.
const OTHERS: u64 = 256;

/// Asks the operating system for as many open files as an administrator allows. Returns the number
/// of connections for which they are enough, which is at most the wanted number.
pub(crate) fn for_connections(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let open = setrlimit(Resource::Nofile, raised).map_or(current, |()| maximum);
    let allowed = open.and_then(|open| usize::try_from(open.saturating_sub(OTHERS) / 2).ok());
    let allowed = std::cmp::max(1, allowed.unwrap_or(wanted));
    if allowed < wanted {
        tracing::warn!(
            "no more than {allowed} connections, because this process may not have more files open \
             (ulimit -n)"
        );
    }
    std::cmp::min(allowed, wanted)
}
