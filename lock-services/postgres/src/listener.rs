use std::{sync::Arc, time::Duration};

use lock_core::Error;
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

/// After notices were found not to arrive: the pooler will hardly be gone in a second.
const DEAF_PAUSE: Duration = Duration::from_secs(60);

/// Where to listen.
#[derive(Clone)]
pub(super) struct Ear {
    address: PgConnectOptions,
    /// Unless the user says that this is the database itself.
    name: Option<SessionName>,
}

impl Ear {
    /// The user says that this is the database itself.
    pub(super) const fn given(address: PgConnectOptions) -> Self {
        Self {
            address,
            name: None,
        }
    }

    /// There may be a pooler between, which would give the session away with the `LISTEN`. Its
    /// other clients would get notices that they cannot read.
    pub(super) fn presumed(address: PgConnectOptions) -> Self {
        let name = SessionName::random();
        Self {
            address: name.at(address),
            name: Some(name),
        }
    }
}

/// What comes of listening.
pub(super) enum Heard<'a> {
    Notice(&'a str),
    /// From here on, all notices.
    Everything,
    /// From here on.
    Nothing,
}

/// Why listening ended.
enum End {
    Lost(Error),
    /// There is a pooler between, or `LISTEN` succeeds and then nothing is heard.
    Deaf,
}

/// Listens on a connection of its own, for as long as the task is not ended.
pub(super) async fn listen(
    client: Arc<Client>,
    ear: Ear,
    channel: String,
    tell: impl Fn(Heard<'_>) + Send + Sync,
) {
    let mut warned = false;
    loop {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(client.response_timeout)
            .connect_lazy_with(ear.address.clone());
        let end = hear(&client, &ear, &pool, &channel, &tell).await;
        tell(Heard::Nothing);
        let pause = match end {
            Err(End::Deaf) => {
                if !std::mem::replace(&mut warned, true) {
                    warn!(
                        "no notices come through what is between here and the database: waiters \
                         look instead. Give the database's own address as ?listen=URL"
                    );
                }
                DEAF_PAUSE
            }
            Err(End::Lost(error)) => {
                debug!(%error, "the connection that listens was lost");
                PAUSE
            }
            Ok(()) => PAUSE,
        };
        tokio::time::sleep(pause).await;
    }
}

/// Hears notices until the connection is lost.
async fn hear(
    client: &Client,
    ear: &Ear,
    pool: &PgPool,
    channel: &str,
    tell: &(impl Fn(Heard<'_>) + Sync),
) -> Result<(), End> {
    let lost = |error| End::Lost(translate(error));
    let listener = PgListener::connect_with(pool).await;
    let mut listener = listener.map_err(|error| match is_refused(&error) {
        true => End::Deaf,
        false => lost(error),
    })?;
    listener.ignore_pool_close_event(true);
    if let Some(name) = &ear.name
        && !name.is_here(&mut listener).await.map_err(lost)?
    {
        return Err(End::Deaf);
    }
    listener.listen(channel).await.map_err(lost)?;
    let sent = client.plain(sql::notify(channel)).await;
    let heard = tokio::time::timeout(client.response_timeout, listener.recv()).await;
    match (sent, heard) {
        (_, Ok(heard)) => tell(Heard::Notice(heard.map_err(lost)?.payload())),
        (Ok(_), Err(_)) => return Err(End::Deaf),
        (Err(error), Err(_)) => return Err(End::Lost(error)),
    }
    tell(Heard::Everything);
    while let Some(notice) = listener.try_recv().await.map_err(lost)? {
        tell(Heard::Notice(notice.payload()));
    }
    Ok(())
}
