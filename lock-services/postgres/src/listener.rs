use std::{sync::Arc, time::Duration};

use lock_core::{Error, backend::Runtime};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tracing::{debug, warn};

use super::{
    client::Client,
    error::translate,
    own_session::{SessionName, is_refused},
    sql,
};

/// After a connection was lost or could not be made.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause when no notices arrive: the pooler will hardly be gone in a second.
const NO_NOTICES_PAUSE: Duration = Duration::from_secs(60);

/// Where to listen.
#[derive(Clone)]
pub(super) struct ListenAddress {
    options: PgConnectOptions,
    /// Unless the user says that this is the database itself.
    name: Option<SessionName>,
}

impl ListenAddress {
    /// The user says that this is the database itself.
    pub(super) const fn direct(options: PgConnectOptions) -> Self {
        Self {
            options,
            name: None,
        }
    }

    /// There may be a pooler between, which would give the session, with its `LISTEN`, to other
    /// clients. They would get notices that they cannot read.
    pub(super) fn perhaps_pooled(options: PgConnectOptions, runtime: &dyn Runtime) -> Self {
        let name = SessionName::draw(runtime);
        Self {
            options: name.at(options),
            name: Some(name),
        }
    }
}

/// An event of the listener.
pub(super) enum ListenEvent<'a> {
    Notice(&'a str),
    /// From here on all notices arrive.
    Connected,
    /// From here on none arrives.
    Disconnected,
}

/// Why listening ended.
enum End {
    Lost(Error),
    /// There is a pooler between, or `LISTEN` succeeds and then no notice arrives.
    NoNotices,
}

/// Listens on a connection of its own, for as long as the task is not ended.
pub(super) async fn listen(
    client: Arc<Client>,
    address: ListenAddress,
    channel: String,
    tell: impl Fn(ListenEvent<'_>) + Send + Sync,
) {
    let mut warned = false;
    loop {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(client.response_timeout)
            .connect_lazy_with(address.options.clone());
        let end = receive(&client, &address, &pool, &channel, &tell).await;
        tell(ListenEvent::Disconnected);
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
        client.runtime.sleep(pause).await;
    }
}

/// Receives notices until the connection is lost.
async fn receive(
    client: &Client,
    address: &ListenAddress,
    pool: &PgPool,
    channel: &str,
    tell: &(impl Fn(ListenEvent<'_>) + Sync),
) -> Result<(), End> {
    let lost = |error| End::Lost(translate(error));
    let listener = PgListener::connect_with(pool).await;
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
    listener.listen(channel).await.map_err(lost)?;
    let sent = client.plain(sql::notify(channel)).await;
    let received = client
        .runtime
        .timeout(client.response_timeout, listener.recv());
    match (sent, received.await) {
        (_, Some(notice)) => tell(ListenEvent::Notice(notice.map_err(lost)?.payload())),
        (Ok(_), None) => return Err(End::NoNotices),
        (Err(error), None) => return Err(End::Lost(error)),
    }
    tell(ListenEvent::Connected);
    while let Some(notice) = listener.try_recv().await.map_err(lost)? {
        tell(ListenEvent::Notice(notice.payload()));
    }
    Ok(())
}
