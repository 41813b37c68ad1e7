use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use lock_core::{FencingToken, InitialToken};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinSet};

use palisade_cli::{Address, Failure, ephemeral, gateway, listen};
use palisade_gateway::Setup;

use crate::{api, client::GatewayClient, events::Recorder, ledger};

/// The first token of an in-process lock service. The well-known figure about fencing has these
/// tokens.
const FIRST_TOKEN: u64 = 33;

/// A gateway of our own on a free port of this machine, and a folder that is deleted afterwards.
#[derive(Debug)]
pub(super) struct Stage {
    addr: SocketAddr,
    lock_kind: &'static str,
    store_kind: &'static str,
    stop: oneshot::Sender<()>,
    serving: JoinSet<io::Result<()>>,
    scratch: TempDir,
}

impl Stage {
    /// Connects to the servers and starts the gateway.
    ///
    /// # Errors
    /// If a server cannot be used, or this machine has no free port or no temporary folder.
    pub(super) async fn set(
        lock: &Address,
        store: Option<&Address>,
        recorder: Recorder,
    ) -> Result<Self, Failure> {
        let making = Failure::machine("making a temporary folder");
        let scratch = tempfile::Builder::new()
            .prefix("palisade-")
            .tempdir()
            .map_err(making)?;
        let store = match store {
            Some(store) => store.clone(),
            None => Address::sqlite_file(&scratch.path().join("accounts.db")),
        };
        let mut setup = Setup::default();
        setup.signing = Some(ephemeral("scenario")?);
        let (gateway, store) = gateway(lock, &store, None, initial_token(lock), setup).await?;
        ledger::prepare(&store, None).await?;
        let routes = api::routes(&gateway, &store, Some(recorder), false);
        let listener = listen(Some((Ipv4Addr::LOCALHOST, 0).into())).await?;
        let addr = listener
            .local_addr()
            .map_err(Failure::machine("finding a free port"))?;
        let (lock_kind, store_kind) = (gateway.locks().backend_kind(), store.kind());
        let (stop, stopped) = oneshot::channel();
        let mut serving = JoinSet::new();
        // A drop of the stage stops its gateway, too: then `stopped` returns an error, which has
        // the same effect.
        serving.spawn(gateway.serve(routes, listener, async { drop(stopped.await) }));
        Ok(Self {
            addr,
            lock_kind,
            store_kind,
            stop,
            serving,
            scratch,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// A client for the scenario itself, whose requests are not part of the story.
    pub(super) fn client(&self) -> Result<GatewayClient, Failure> {
        GatewayClient::for_director(self.url())
    }

    pub(super) const fn lock_kind(&self) -> &'static str {
        self.lock_kind
    }

    pub(super) const fn store_kind(&self) -> &'static str {
        self.store_kind
    }

    /// Shuts the gateway down after its requests, and removes the folder.
    ///
    /// # Errors
    /// If requests do not end, or the folder cannot be removed.
    pub(super) async fn strike(mut self) -> Result<(), Failure> {
        // If there is no receiver, the gateway has already ended, and there is a result to return.
        let _ended = self.stop.send(()).is_err();
        while let Some(served) = self.serving.join_next().await {
            let served = served.unwrap_or_else(|panic| Err(io::Error::other(panic)));
            served.map_err(Failure::machine("serving"))?;
        }
        self.scratch
            .close()
            .map_err(Failure::machine("removing a temporary folder"))
    }
}

/// The first token of the lock service. A lock service on a server keeps its usual tokens. An
/// in-process one begins at a small number, because small tokens are easier to read.
fn initial_token(lock: &Address) -> InitialToken {
    match FencingToken::new(FIRST_TOKEN) {
        Ok(first) if lock.scheme() == "memory" => InitialToken::At(first),
        _ => InitialToken::default(),
    }
}

/// A new, permanent file for a picture, in the temporary folder of this machine.
///
/// # Errors
/// If it cannot be created.
pub(super) fn new_picture_file() -> Result<PathBuf, Failure> {
    let folder = std::env::temp_dir();
    let cannot = |source| Failure::CannotWrite {
        path: folder.clone(),
        source,
    };
    let file = tempfile::Builder::new()
        .prefix("palisade-")
        .suffix(".svg")
        .tempfile();
    let (_, path) = file
        .map_err(cannot)?
        .keep()
        .map_err(|error| cannot(error.error))?;
    Ok(path)
}
