use std::{sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind,
    backend::{Runtime, support::database},
};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, MySql, MySqlConnection, MySqlPool,
    Row as _,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    pool::PoolConnection,
};

use super::{
    error::{is_refusal_to_connect, not_connected},
    service_url::ServiceUrl,
};

/// Connections that only the lock service uses, because renewals and releases would otherwise queue
/// behind the transactions of the application. They are made when they are needed.
#[derive(Clone)]
pub(super) struct Connections {
    pool: MySqlPool,
    timeout: Duration,
    runtime: Arc<dyn Runtime>,
}

impl Connections {
    pub(super) fn to(
        address: MySqlConnectOptions,
        url: &ServiceUrl,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let timeout = url.settings.response_timeout;
        let pool = MySqlPoolOptions::new()
            .max_connections(url.connections)
            .acquire_timeout(timeout)
            .after_connect(move |connection, _| Box::pin(set_up(connection, timeout)))
            .connect_lazy_with(address);
        Self {
            pool,
            timeout,
            runtime,
        }
    }

    /// Takes a connection. An idle connection is not checked. If it was lost, the request fails,
    /// and is sent again, as each request may be.
    pub(super) async fn take(&self) -> Result<PoolConnection<MySql>, Error> {
        if let Some(idle) = self.pool.try_acquire() {
            return Ok(idle);
        }
        let pooled = self.pool.acquire();
        let taken = database::take(&*self.runtime, self.timeout, pooled, self.refusal()).await;
        let taken = taken.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        taken.map_err(not_connected)
    }

    /// The reason why the server takes no connections. `None` if it takes them.
    async fn refusal(&self) -> Option<sqlx::Error> {
        let connected = async {
            let mut connection = self.pool.connect_options().connect().await?;
            set_up(&mut connection, self.timeout).await?;
            connection.close().await
        };
        let error = connected.await.err()?;
        is_refusal_to_connect(&error).then_some(error)
    }
}

/// Sets the settings of the session on which the calls depend, and checks them, because a proxy
/// might not pass them on.
///
/// A wait for a lock of the database ends after about the response timeout, so that sessions whose
/// clients have gone do not pile up behind a commit that hangs. The server counts whole seconds.
async fn set_up(connection: &mut MySqlConnection, timeout: Duration) -> Result<(), sqlx::Error> {
    let seconds = timeout.as_millis().div_ceil(1000);
    let set = format!(
        "SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = {seconds}, \
         lock_wait_timeout = {seconds}, sql_mode = 'STRICT_ALL_TABLES', autocommit = 1, \
         completion_type = 0"
    );
    sqlx::raw_sql(AssertSqlSafe(set))
        .execute(&mut *connection)
        .await?;
    let seen = "SELECT CONCAT_WS(' ', @@time_zone, @@innodb_lock_wait_timeout, \
                @@lock_wait_timeout, @@sql_mode, IF(@@autocommit, 1, 0), @@completion_type)";
    let seen = sqlx::raw_sql(seen).fetch_one(connection).await?;
    let seen: String = seen.try_get_unchecked(0)?;
    let wanted = format!("+00:00 {seconds} {seconds} STRICT_ALL_TABLES 1 NO_CHAIN");
    if seen == wanted {
        return Ok(());
    }
    let why = format!("the settings of a session are {seen:?}, and not {wanted:?}");
    Err(sqlx::Error::Configuration(
        Error::not_applied(ErrorKind::Refused).because(why).into(),
    ))
}
