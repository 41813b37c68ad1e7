use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lock_core::{
    Error,
    backend::{
        Runtime,
        support::database::{Procedures, Waiters},
    },
};
use sqlx::postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions};
use tracing::{debug, warn};

use super::{
    client::Client,
    error::translate,
    own_session::{SessionName, is_refused},
    sql,
};

/// The pause after a connection was lost or could not be made.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause when no notices arrive. It is long, because a pooler seldom goes away within a second.
const NO_NOTICES_PAUSE: Duration = Duration::from_secs(60);

/// The address on which to listen.
pub(super) struct ListenAddress {
    options: PgConnectOptions,
    /// The name of the session. `None` if the user says that this is the address of the database
    /// itself.
    name: Option<SessionName>,
}

impl ListenAddress {
    /// The address of the database itself, as the user says.
    pub(super) const fn direct(options: PgConnectOptions) -> Self {
        Self {
            options,
            name: None,
        }
    }

    /// An address behind which there may be a pooler. A pooler would give the session, with its
    /// `LISTEN`, to other clients, and they would get notices that they cannot read.
    pub(super) fn perhaps_pooled(options: PgConnectOptions, runtime: &dyn Runtime) -> Self {
        let name = SessionName::draw(runtime);
        Self {
            options: name.at(options),
            name: Some(name),
        }
    }
}

/// Why listening ended.
enum End {
    Lost(Error),
    /// There is a pooler in between, or `LISTEN` succeeds but no notice arrives.
    NoNotices,
}

/// Listens on a connection of its own, until the task is ended.
pub(super) async fn listen(waiters: Arc<Waiters<Client>>) {
    let client = waiters.database();
    let mut warned = false;
    loop {
        let end = receive(&waiters).await;
        notices_arrive(&waiters, false);
        let pause = match end {
            Err(End::NoNotices) => {
                if !std::mem::replace(&mut warned, true) {
                    warn!(
                        "no notices come through what is between here and the database: waiters \
                         look instead. Give the database's own address as ?listen=URL"
                    );
                }
                NO_NOTICES_PAUSE
            }
            Err(End::Lost(error)) => {
                debug!(%error, "the connection that listens was lost");
                PAUSE
            }
            Ok(()) => PAUSE,
        };
        client.runtime().sleep(pause).await;
    }
}

/// Notes whether notices arrive. Some may have been lost before this.
fn notices_arrive(waiters: &Waiters<Client>, arrive: bool) {
    waiters.database().listens.store(arrive, Ordering::Relaxed);
    waiters.look_now();
}

/// Wakes the waiter that a notice names, by its resource and the fingerprint of its holder.
fn wake(waiters: &Waiters<Client>, notice: &PgNotification) {
    let (resource, holder) = notice.payload().split_once(' ').unwrap_or_default();
    waiters.wake(resource, holder);
}

/// Receives notices until the connection is lost.
async fn receive(waiters: &Waiters<Client>) -> Result<(), End> {
    let lost = |error| End::Lost(translate(error));
    let client = waiters.database();
    let (address, timeout) = (&client.listen_address, client.response_timeout);
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(timeout)
        .connect_lazy_with(address.options.clone());
    let listener = PgListener::connect_with(&pool).await;
    let mut listener = listener.map_err(|error| match is_refused(&error) {
        true => End::NoNotices,
        false => lost(error),
    })?;
    listener.ignore_pool_close_event(true);
    if let Some(name) = &address.name
        && !name.is_here(&mut listener).await.map_err(lost)?
    {
        return Err(End::NoNotices);
    }
    listener.listen(client.name()).await.map_err(lost)?;
    let sent = client.plain(sql::notify(client.name())).await;
    let received = client.runtime().timeout(timeout, listener.recv());
    match (sent, received.await) {
        (_, Some(notice)) => wake(waiters, &notice.map_err(lost)?),
        (Ok(_), None) => return Err(End::NoNotices),
        (Err(error), None) => return Err(End::Lost(error)),
    }
    notices_arrive(waiters, true);
    while let Some(notice) = listener.try_recv().await.map_err(lost)? {
        wake(waiters, &notice);
    }
    Ok(())
}
