//! Whether a connection has a session of its own in the database, or gets one for each transaction
//! from a pooler.
//!
//! A setting that comes with the connection shows which it is. A proxy that forwards bytes passes
//! the setting on, and the session has it. A pooler such as PgBouncer refuses the setting, or has
//! made its sessions without it. Addresses would not show it, because a proxy or a mapped port has
//! an address of its own.

use std::time::Duration;

use lock_core::backend::Runtime;
use sqlx::{ConnectOptions, Connection, PgExecutor, Row, postgres::PgConnectOptions};
use tracing::debug;

/// A name for the session of a connection that is not made yet.
#[derive(Clone)]
pub(super) struct SessionName(String);

impl SessionName {
    pub(super) fn draw(runtime: &dyn Runtime) -> Self {
        Self(format!("{:032x}", runtime.random()))
    }

    /// The same address, for a session of this name.
    pub(super) fn at(&self, address: PgConnectOptions) -> PgConnectOptions {
        address.options([("palisade.session", &self.0)])
    }

    /// Whether the session has this name.
    pub(super) async fn is_here(&self, session: impl PgExecutor<'_>) -> Result<bool, sqlx::Error> {
        let name = "SELECT pg_catalog.current_setting('palisade.session', true)";
        // Nothing is prepared, because a pooler may give the connection another session a moment
        // later.
        let row = sqlx::raw_sql(name).fetch_one(session).await?;
        Ok(row.try_get::<Option<String>, _>(0)?.as_ref() == Some(&self.0))
    }
}

/// Whether connections to this address have sessions of their own, with no pooler in between. Makes
/// a connection to find out. If that fails, the answer is no.
///
/// # Cancel safety
/// Cancel safe: the connection is closed.
pub async fn is_own_session(
    address: &PgConnectOptions,
    timeout: Duration,
    runtime: &dyn Runtime,
) -> bool {
    let name = SessionName::draw(runtime);
    let asked = async {
        let mut session = name.at(address.clone()).connect().await?;
        let is_own = name.is_here(&mut session).await?;
        session.close().await?;
        Ok(is_own)
    };
    let asked = runtime.timeout(timeout, asked).await;
    let answer = asked.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    answer.unwrap_or_else(|error| {
        debug!(%error, "statements are not prepared, as through a pooler");
        false
    })
}

/// Whether a setting that came with the connection was refused.
pub(super) fn is_refused(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| error.code().as_deref() == Some("08P01"))
}
