use std::{
    io, process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// 128 plus the number of SIGINT, as in shells.
pub(crate) const EXIT_CODE: u8 = 130;

/// Becomes true at Ctrl-C. The next Ctrl-C ends the program.
///
/// # Errors
/// If the operating system refuses a signal handler.
pub(crate) fn listen() -> io::Result<Arc<AtomicBool>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let mut interrupts = signal(SignalKind::interrupt())?;
    drop(inside);
    let was_interrupted = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&was_interrupted);
    thread::spawn(move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() {
                if seen.swap(true, Ordering::Relaxed) {
                    process::exit(EXIT_CODE.into());
                }
            }
        });
    });
    Ok(was_interrupted)
}
