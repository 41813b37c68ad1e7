//! Open files: every connection of the gateway needs two.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For everything that is not a connection of a client: databases, the lock service, the page.
const OTHERS: u64 = 256;

/// Asks the operating system for enough open files, and returns how many connections that allows:
/// as many as wanted, or fewer if an administrator has set a limit.
pub(crate) fn for_connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = 2 * u64::try_from(wanted).unwrap_or(u64::MAX / 4) + OTHERS;
    if limit.current.is_none_or(|current| current >= needed) {
        return wanted;
    }
    let granted = limit
        .maximum
        .map_or(needed, |most| std::cmp::min(most, needed));
    let raised = Rlimit {
        current: Some(granted),
        maximum: limit.maximum,
    };
    let granted = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => granted,
        Err(_) => limit.current.unwrap_or(granted),
    };
    let allowed = usize::try_from(granted.saturating_sub(OTHERS) / 2).unwrap_or(wanted);
    if allowed >= wanted {
        return wanted;
    }
    let allowed = std::cmp::max(1, allowed);
    tracing::warn!(
        "no more than {allowed} connections, because this process may have {granted} files open \
         (ulimit -n)"
    );
    allowed
}
