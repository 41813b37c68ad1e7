//! `serve`: the gateway until a signal ends it.

use lock_core::InitialToken;
use tokio::sync::oneshot;

use crate::{
    cli::ServeArgs,
    console::Console,
    failure::Failure,
    gateway::{Gateway, Limits, listen},
    interrupt::Interrupts,
};

/// Serves until Ctrl-C or SIGTERM, finishes what is under way, and ends. A second signal ends it at
/// once.
///
/// # Errors
/// If the address is taken, a server cannot be used, or requests under way do not end in time.
pub(crate) async fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen()?;
    // The cheapest mistake first: a taken address needs no server to be found out.
    let listener = listen(args.addr).await?;
    let addr = listener
        .local_addr()
        .map_err(Failure::machine("finding the port"))?;
    let (lock, store) = (&args.lock.address, &args.store);
    let limits = Limits {
        request_time: args.request_timeout,
        waiting: args.max_waiting,
    };
    let gateway = Gateway::open(lock, store, InitialToken::default(), limits, None).await?;
    Console::Stdout.line(format!(
        "listening on http://{addr} (lock service {lock}, store {store})",
    ));

    let (stop, stopped) = oneshot::channel::<()>();
    let mut stop = Some(stop);
    let serving = gateway.serve(listener, async { drop(stopped.await) });
    tokio::pin!(serving);
    loop {
        tokio::select! {
            served = &mut serving => return served,
            interrupt = interrupts.next() => {
                // Taken: the first signal asks, the second insists.
                let Some(stop) = stop.take() else { return Err(Failure::Interrupted(interrupt)) };
                Console::Stdout.line(format!("{interrupt}: finishing what is under way"));
                drop(stop);
            }
        }
    }
}
