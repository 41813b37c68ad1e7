//! Which core runs the server, and which core runs the clients.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use tokio::runtime::Builder;

use crate::error::BoxError;

/// Where server and clients run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pinning {
    /// On one core. This measures the work, without the wake-up of another core.
    SameCore,
    /// On two cores. Every message wakes the other core, as it would wake another machine.
    CrossCore,
    /// Wherever the system puts them, as in `bench peers`.
    Unpinned,
}

impl Pinning {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SameCore => "same-core",
            Self::CrossCore => "cross-core",
            Self::Unpinned => "unpinned",
        }
    }

    /// Runs the work on a runtime of its own. Pins this thread, and every thread and process that
    /// it starts from now on, to the core of the clients.
    pub(crate) fn run<T>(
        self,
        work: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        pin(match self {
            Self::SameCore => &[0],
            Self::CrossCore => &[1],
            Self::Unpinned => &[0, 1],
        })?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work)
    }
}

/// Starts processes or threads on the core of the server.
pub(crate) fn on_server_core<T>(start: impl FnOnce() -> T) -> Result<T, BoxError> {
    let own = sched_getaffinity(None)?;
    pin(&[0])?;
    let started = start();
    sched_setaffinity(None, &own)?;
    Ok(started)
}

/// Starts a server of the tests on the core of the server: its processes inherit the core from the
/// thread that starts them, which has a runtime of its own, so that no other thread starts them.
pub(crate) fn start_server<S: Send + 'static>(
    start: impl AsyncFnOnce() -> S + Send + 'static,
) -> Result<S, BoxError> {
    let starting = thread::spawn(move || {
        pin(&[0])?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(start()))
    });
    let started = starting.join();
    started.unwrap_or_else(|_panic| Err("a server cannot be started".into()))
}

/// Pins this thread to some of the first two cores that are available to the process.
fn pin(which: &[usize]) -> Result<(), BoxError> {
    let allowed = allowed()?;
    let mut cores = CpuSet::new();
    which.iter().for_each(|core| cores.set(allowed[*core]));
    sched_setaffinity(None, &cores)?;
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
