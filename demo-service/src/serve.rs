//! `serve`: the gateway until a signal ends it.

use std::net::SocketAddr;

use tokio::sync::oneshot;

use crate::{
    cli::ServeArgs,
    console::Console,
    descriptors,
    failure::Failure,
    gateway::{AdminToken, Gateway, Limits, Setup, listen},
    interrupt::{Interrupt, Interrupts},
    live::{self, Studio},
    own_store,
    signing::Signing,
    telemetry,
};

/// Serves until Ctrl-C or SIGTERM, finishes what is under way, and ends. A second signal ends it at
/// once. SIGHUP has the signing keys read again, if there is a file of them.
///
/// # Errors
/// If the address is taken, a server cannot be used, or requests under way do not end in time.
pub(crate) async fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen().map_err(Failure::machine("listening for signals"))?;
    // The cheapest mistake first: a taken address needs no server to be found out.
    let listener = listen(args.addr).await?;
    let addr = listener
        .local_addr()
        .map_err(Failure::machine("finding the port"))?;
    let store = &match &args.store {
        Some(named) => named.clone(),
        None => own_store::address()?,
    };
    let lock = &args.lock.in_front_of(Some(store));
    let signing = Signing::of(&args.signing)?;
    let mut setup = setup(args, signing.as_ref())?;
    let has_page = has_live_page(args, addr)?;
    warn_if_open(args, addr);
    let studio = has_page.then(|| Studio::new(format!("http://{addr}")));
    setup.recorder = studio.as_ref().map(Studio::recorder);
    let mut gateway = Gateway::open(lock, store, setup).await?;
    if let Some(studio) = studio {
        let page = live::Page {
            studio,
            kinds: [gateway.lock_kind(), gateway.store_kind()],
            request_time: args.request_timeout,
        };
        gateway = gateway.with_routes(|is_closing| live::router(page, is_closing));
    }
    let hint = if has_page {
        "; open it in a browser"
    } else {
        ""
    };
    Console::Stdout.line(format!(
        "listening on http://{addr} (lock service {lock}, store {store}){hint}",
    ));

    let (stop, stopped) = oneshot::channel::<()>();
    let mut stop = Some(stop);
    // Leases in this process end with it, and so may its keys.
    if !lock.is_memory() {
        warn_of_lasting_leases(signing.as_ref());
    }
    let keys_on_file = signing.filter(Signing::has_file);
    let serving = gateway.serve(listener, async { drop(stopped.await) });
    tokio::pin!(serving);
    loop {
        tokio::select! {
            served = &mut serving => return served,
            interrupt = interrupts.next() => {
                if let (Interrupt::HangUp, Some(signing)) = (interrupt, &keys_on_file) {
                    signing.reload();
                    continue;
                }
                // Taken: the first signal asks, the second insists.
                let Some(stop) = stop.take() else { return Err(Failure::Interrupted(interrupt)) };
                Console::Stdout.line(format!("{interrupt}: finishing what is under way"));
                drop(stop);
            }
        }
    }
}

/// Tells what is lost with this process although its leases are not.
fn warn_of_lasting_leases(signing: Option<&Signing>) {
    match signing {
        None => tracing::warn!(
            "tokens are not signed, and an Idempotency-Key is known to this process only: a \
             request that is sent again to another gateway, or after a restart, is a new one"
        ),
        Some(signing) if !signing.has_file() => tracing::warn!(
            "tokens are signed with a key that ends with this process: several gateways, or one \
             that is restarted, need --signing-keys"
        ),
        Some(_) => {}
    }
}

/// Tells that nothing is between the network and the leases.
fn warn_if_open(args: &ServeArgs, addr: SocketAddr) {
    let is_local = addr.ip().to_canonical().is_loopback();
    if !is_local && args.allowed_hosts.is_empty() && args.admin_token.is_none() {
        tracing::warn!(
            "{addr} is answered under every name, so a page in any browser that reaches it can \
             take leases and write: say --allowed-hosts NAMES"
        );
    }
}

/// The live page starts processes for whoever asks, and tells them what is held. So it is for this
/// machine only, and whoever has a proxy or operators has to ask for it.
fn has_live_page(args: &ServeArgs, addr: SocketAddr) -> Result<bool, Failure> {
    let is_local = addr.ip().is_loopback();
    match args.live_page {
        Some(true) if !is_local => Err(Failure::Usage(format!(
            "--live-page: not on {addr}, because it starts processes for whoever asks"
        ))),
        Some(wanted) => Ok(wanted),
        None => Ok(is_local && args.allowed_hosts.is_empty() && args.admin_token.is_none()),
    }
}

fn setup(args: &ServeArgs, signing: Option<&Signing>) -> Result<Setup, Failure> {
    let admin_token = args.admin_token.clone();
    admin_token.as_ref().map_or(Ok(()), AdminToken::check)?;
    Ok(Setup {
        issuer: args.issuer.name.clone(),
        signing: signing.map(Signing::ring),
        secret: signing.map(Signing::secret),
        limits: Limits {
            request_time: args.request_timeout,
            waiting: args.max_waiting,
            connections: descriptors::for_connections(args.max_connections),
            silence: args.silence,
        },
        allowed_hosts: args.allowed_hosts.clone(),
        metrics: Some(telemetry::install()?),
        admin_token,
        unfenced: args.unfenced,
        first_account: args.store.is_none().then_some(own_store::FIRST_ACCOUNT),
        ..Setup::default()
    })
}
