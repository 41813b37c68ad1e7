//! The trace of this process, by all crates.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use tracing_subscriber::filter::LevelFilter;

#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u8>>>);

impl io::Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut trace = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trace.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static TRACE: LazyLock<Trace> = LazyLock::new(|| {
    let trace = Trace::default();
    let writer = trace.clone();
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    trace
});

/// Begins to listen, once for all tests.
pub(crate) fn listen() {
    LazyLock::force(&TRACE);
}

/// The trace so far.
pub(crate) fn so_far() -> String {
    let trace = TRACE.0.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&trace).into_owned()
}
