//! `serve`: runs the gateway until a signal ends it.

use std::{io, net::SocketAddr};

use axum::Router;
use lock_core::InitialToken;
use palisade_gateway::{AdminToken, Gateway, Limits, Setup};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{
    address::Address,
    cli::ServeArgs,
    console::Console,
    database::AnyStore,
    descriptors,
    failure::Failure,
    interrupt::{Interrupt, Interrupts},
    open::{self, listen},
    own_store,
    signing::Signing,
};

/// Serves a gateway and nothing else.
pub(crate) async fn run(args: &ServeArgs) -> Result<(), Failure> {
    let service = Service::open(args, "store.db").await?;
    let gateway = service.gateway();
    let document = palisade_gateway::document(gateway.has_operators());
    let routes = gateway.router();
    let documentation = palisade_gateway::documentation(document);
    service.run(routes.merge(documentation), "").await
}

/// The gateway that the command line describes. It listens, and does not answer yet.
#[derive(Debug)]
pub struct Service {
    gateway: Gateway,
    store: AnyStore,
    addr: SocketAddr,
    listener: TcpListener,
    interrupts: Interrupts,
    signing: Option<Signing>,
    /// The addresses of the lock service and of the store.
    behind: [Address; 2],
}

impl Service {
    /// Listens, and connects to the lock service and the store: both are in a file of this name in
    /// the user's data folder, if the arguments name no other.
    ///
    /// # Errors
    /// If the address is taken, or a server cannot be used.
    ///
    /// # Cancel safety
    /// Cancel safe: tables may have been created.
    pub async fn open(args: &ServeArgs, file: &str) -> Result<Self, Failure> {
        let interrupts = Interrupts::listen().map_err(Failure::machine("listening for signals"))?;
        // This comes first, because a taken address is noticed without a server.
        let listener = listen(args.addr).await?;
        let addr = listener
            .local_addr()
            .map_err(Failure::machine("finding the port"))?;
        let own = match &args.store {
            Some(_) => None,
            None => Some(own_store::folder()?),
        };
        let named = || args.store.clone().unwrap_or_else(Address::memory);
        let store_address = own
            .as_deref()
            .map_or_else(named, |own| own_store::address(own, file));
        let lock = args.lock.in_front_of(Some(&store_address));
        // The leases in this file outlive this process, so the key that signs their tokens has to,
        // too.
        let own = own.filter(|_| lock == store_address);
        let signing = Signing::of(&args.signing, || {
            own.as_deref().map(own_store::signing_keys).transpose()
        })?;
        let setup = setup(args, signing.as_ref())?;
        warn_if_open(args, addr);
        let (issuer, first) = (args.issuer.name.as_ref(), InitialToken::default());
        let (gateway, store) = open::gateway(&lock, &store_address, issuer, first, setup).await?;
        Ok(Self {
            gateway,
            store,
            addr,
            listener,
            interrupts,
            signing,
            behind: [lock, store_address],
        })
    }

    /// The gateway.
    #[must_use]
    pub const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The store behind it.
    #[must_use]
    pub const fn store(&self) -> &AnyStore {
        &self.store
    }

    /// The address on which the gateway listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves these routes until Ctrl-C or SIGTERM, finishes what is under way, and ends. A second
    /// signal ends it at once. On SIGHUP the signing keys are read again, if there is a file of
    /// them. The hint is the end of the line that prints the address.
    ///
    /// # Errors
    /// If requests under way do not end in time.
    ///
    /// # Cancel safety
    /// Cancel safe. All connections end.
    pub async fn run(self, routes: Router, hint: &str) -> Result<(), Failure> {
        let Self {
            gateway,
            addr,
            listener,
            mut interrupts,
            signing,
            behind: [lock, store],
            ..
        } = self;
        Console::Stdout.line(format!(
            "listening on http://{addr} (lock service {lock}, store {store}){hint}",
        ));
        let (stop, stopped) = oneshot::channel::<()>();
        let mut stop = Some(stop);
        // Leases in this process end with it, and so may its keys.
        if !lock.is_memory() {
            warn_of_lasting_leases(signing.as_ref());
        }
        let keys_on_file = signing.filter(Signing::has_named_file);
        let serving = gateway.serve(routes, listener, async { drop(stopped.await) });
        tokio::pin!(serving);
        loop {
            tokio::select! {
                biased;
                served = &mut serving => {
                    return served.map_err(Failure::machine("finishing the requests under way"));
                }
                interrupt = interrupts.next() => {
                    if let (Interrupt::HangUp, Some(signing)) = (interrupt, &keys_on_file) {
                        signing.reload();
                        continue;
                    }
                    // If it is taken, this is the second signal, which ends the gateway at once.
                    let Some(stop) = stop.take() else {
                        let then = "requests under way are cut off";
                        return Err(Failure::Stopped { interrupt, then });
                    };
                    Console::Stdout.line(format!("{interrupt}: finishing requests under way"));
                    drop(stop);
                }
            }
        }
    }
}

/// Warns of state that is lost with this process, although the leases are not.
fn warn_of_lasting_leases(signing: Option<&Signing>) {
    match signing {
        None => tracing::warn!(
            "tokens are not signed, and only this process knows its Idempotency-Keys: a request \
             that is sent again to another gateway, or after a restart, is a new one"
        ),
        Some(signing) if !signing.has_file() => tracing::warn!(
            "tokens are signed with a key that ends with this process: several gateways, or one \
             that is restarted, need --signing-keys"
        ),
        Some(_) => {}
    }
}

/// Warns if nothing protects the leases from the network.
fn warn_if_open(args: &ServeArgs, addr: SocketAddr) {
    let is_local = addr.ip().to_canonical().is_loopback();
    if !is_local && !args.has_neighbours() {
        tracing::warn!(
            "{addr} is answered under every name, so a page in any browser that reaches it can \
             take leases and write: use --allowed-hosts NAMES"
        );
    }
}

fn setup(args: &ServeArgs, signing: Option<&Signing>) -> Result<Setup, Failure> {
    let admin_token = args.admin_token.clone();
    if let Some(Err(weak)) = admin_token.as_ref().map(AdminToken::check) {
        return Err(Failure::Usage(format!("--admin-token: {weak}")));
    }
    let mut limits = Limits::default();
    limits.request_time = args.request_timeout;
    limits.waiting = args.max_waiting;
    limits.connections = descriptors::for_connections(args.max_connections);
    limits.silence = args.silence;
    let metrics = palisade_gateway::count().map_err(|error| Failure::Machine {
        doing: "starting the metrics",
        source: io::Error::other(error),
    })?;
    let mut setup = Setup::default();
    setup.signing = signing.map(Signing::ring);
    setup.secret = signing.map(Signing::secret);
    setup.limits = limits;
    setup.allowed_hosts = args.allowed_hosts.clone();
    setup.metrics = Some(metrics);
    setup.admin_token = admin_token;
    setup.forget_after = args.forget_after.0;
    Ok(setup)
}
