//! Which core serves and which one asks.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Where server and client run.
#[derive(Clone, Copy)]
pub(crate) enum Pinning {
    /// On one core: what is measured is work, not waking up.
    Same,
    /// On two: every message wakes the other core, as it would another machine.
    Cross,
}

impl Pinning {
    pub(crate) const BOTH: [Self; 2] = [Self::Same, Self::Cross];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Same => "same-core",
            Self::Cross => "cross-core",
        }
    }

    /// Pins this thread. A server that is started afterwards is pinned with [`Self::server_core`].
    pub(crate) fn pin_client(self) -> rustix::io::Result<()> {
        let mut cores = CpuSet::new();
        cores.set(match self {
            Self::Same => 0,
            Self::Cross => 1,
        });
        sched_setaffinity(None, &cores)
    }

    /// The core of the server, for `taskset`.
    pub(crate) const fn server_core(self) -> &'static str {
        "0"
    }
}
