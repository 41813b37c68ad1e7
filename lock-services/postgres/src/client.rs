use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    Clock, Error, ErrorKind, Moment,
    support::{Asking, Silence, Tasks, lock},
};
use sqlx::{AssertSqlSafe, PgPool, Row, postgres::PgRow};

use super::{
    error::{is_stray, not_connected, translate},
    sql,
};

/// For so long after it was sent a request to acquire may come into effect. Tombstones last longer.
const REQUEST_TTL: Duration = Duration::from_secs(30);

/// The interface that this client was written for.
const VERSION: i32 = 1;

/// Sends requests to the database, each on a task that brings it to its end.
pub(super) struct Client {
    pool: PgPool,
    pub(super) tasks: Tasks,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) response_timeout: Duration,
    pub(super) silence: Silence,
    learnt: Mutex<Learnt>,
}

/// What the database's clock said, and when, by ours.
#[derive(Clone, Copy, Debug, Default)]
struct Learnt {
    unix: Duration,
    at: Moment,
}

impl Client {
    pub(super) async fn connect(
        pool: PgPool,
        response_timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let client = Self {
            pool,
            tasks: Tasks::here(),
            silence: Silence::new(Arc::clone(&clock)),
            clock,
            response_timeout,
            learnt: Mutex::default(),
        };
        client.learn().await?;
        Ok(client)
    }

    /// Reads the database's clock, and what interface it has.
    pub(super) async fn learn(&self) -> Result<(), Error> {
        let at = self.clock.now();
        let row = self.one(sql::WELCOME.to_owned()).await?;
        let version: i32 = row.try_get("version").map_err(translate)?;
        if version != VERSION {
            let why = format!("it has version {version} of `fenced`, and {VERSION} is needed");
            return Err(Error::not_applied(ErrorKind::Refused).because(why));
        }
        let micros: i64 = row.try_get("unix_micros").map_err(translate)?;
        let unix = Duration::from_micros(micros.unsigned_abs());
        *lock(&self.learnt) = Learnt { unix, at };
        Ok(())
    }

    /// Until when a request that is sent now may come into effect, by the database's clock: a
    /// pooler may keep it for minutes.
    pub(super) fn not_after(&self) -> String {
        let Learnt { unix, at } = *lock(&self.learnt);
        let until = unix + self.clock.now().since(at) + REQUEST_TTL;
        format!(
            "pg_catalog.to_timestamp({}.{:06})",
            until.as_secs(),
            until.subsec_micros()
        )
    }

    /// Sends a request that has one row for an answer.
    pub(super) async fn one(&self, sql: String) -> Result<PgRow, Error> {
        let mut rows = self.rows(sql).await?;
        rows.pop().ok_or_else(|| {
            Error::unknown(ErrorKind::Refused).because("the database gave no answer")
        })
    }

    /// Sends a request, and waits for its answer. If the caller goes away meanwhile, the request
    /// goes on: its connection is free again only when it was answered, or is closed.
    pub(super) async fn rows(&self, sql: String) -> Result<Vec<PgRow>, Error> {
        let asking: Asking<'_> = self.silence.ask();
        let (pool, timeout) = (self.pool.clone(), self.response_timeout);
        let request = self.tasks.spawn(send(pool, timeout, sql));
        let answer = request
            .await
            .map_err(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Error::unknown(ErrorKind::ShutDown).caused_by(error),
            })?;
        if answer.is_ok() {
            asking.answered();
        }
        answer
    }
}

async fn send(pool: PgPool, timeout: Duration, sql: String) -> Result<Vec<PgRow>, Error> {
    let connecting = tokio::time::timeout(timeout, pool.acquire()).await;
    let mut connection = match connecting {
        Ok(connection) => connection.map_err(not_connected)?,
        Err(_) => return Err(not_connected(sqlx::Error::PoolTimedOut)),
    };
    let query = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut *connection);
    match tokio::time::timeout(timeout, query).await {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => {
            if is_stray(&error) {
                connection.close_on_drop();
            }
            Err(translate(error))
        }
        Err(_) => {
            connection.close_on_drop();
            let silent = Error::unknown(ErrorKind::Unavailable);
            Err(silent.because(format!("no answer within {timeout:?}")))
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
