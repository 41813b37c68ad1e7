//! Which core runs the server and which one the clients.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::error::BoxError;

/// Where server and clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pinning {
    /// On one core: this measures work, without the wake-up of another core.
    SameCore,
    /// On two cores: every message wakes the other core, as it would wake another machine.
    CrossCore,
}

impl Pinning {
    pub(crate) const BOTH: [Self; 2] = [Self::CrossCore, Self::SameCore];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SameCore => "same-core",
            Self::CrossCore => "cross-core",
        }
    }

    /// Pins this thread to the core of the server, before it starts the server's process.
    pub(crate) fn pin_for_server(self) -> Result<(), BoxError> {
        pin(0)
    }

    /// Pins this thread, and everything that it starts from now on, to the core of the clients.
    pub(crate) fn pin_for_clients(self) -> Result<(), BoxError> {
        pin(match self {
            Self::SameCore => 0,
            Self::CrossCore => 1,
        })
    }
}

/// Pins this thread to one of the first two cores that are available to the process.
fn pin(which: usize) -> Result<(), BoxError> {
    let mut one = CpuSet::new();
    one.set(allowed()?[which]);
    sched_setaffinity(None, &one)?;
    Ok(())
}

/// The first two cores available to the process, determined before anything was pinned.
fn allowed() -> Result<[usize; 2], BoxError> {
    static ALLOWED: std::sync::OnceLock<Option<[usize; 2]>> = std::sync::OnceLock::new();
    let find = || {
        let cores = sched_getaffinity(None).ok()?;
        let mut usable = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
        Some([usable.next()?, usable.next()?])
    };
    ALLOWED
        .get_or_init(find)
        .ok_or_else(|| "two cores are needed, one for the server and one for its clients".into())
}
