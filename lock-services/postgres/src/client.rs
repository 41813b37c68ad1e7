use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Error, ErrorKind,
    backend::{
        Moment, Runtime,
        support::{LeaseNames, Tasks, connecting::Settings, lock, unlogged},
    },
};
use sqlx::{AssertSqlSafe, PgConnection, Row, postgres::PgRow};

use super::{
    call::{Call, Value},
    connections::Connections,
    error::{TAKES_NO_WRITES, is_not_for_prepared, is_session_over, translate},
    own_session::is_own_session,
    sql,
};

/// For so long after it was sent a request to acquire may come into effect. Tombstones last longer.
const REQUEST_TTL: Duration = Duration::from_secs(30);

/// The interface that this client was written for.
const VERSION: i32 = 2;

/// Sends requests to the database, each on a task that brings it to its end.
pub(super) struct Client {
    connections: Connections,
    pub(super) tasks: Tasks,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) response_timeout: Duration,
    pub(super) names: LeaseNames,
    /// Whether statements can be prepared.
    prepares: Arc<AtomicBool>,
    server_time: Mutex<ClockSample>,
}

/// A time of the database's clock, and the moment when it was read, by ours.
#[derive(Clone, Copy, Debug, Default)]
struct ClockSample {
    unix: Duration,
    at: Moment,
}

impl Client {
    pub(super) async fn connect(
        connections: Connections,
        settings: &Settings,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let response_timeout = settings.response_timeout;
        let client = Self {
            connections,
            tasks: Tasks::here(Arc::clone(&runtime)),
            runtime,
            response_timeout,
            names: LeaseNames::new(&settings.prefix),
            prepares: Arc::default(),
            server_time: Mutex::default(),
        };
        client.check_owner().await?;
        let is_read_committed = client.check_server().await?;
        let address = client.connections.address();
        let runtime = &*client.runtime;
        let prepares =
            is_read_committed && is_own_session(&address, response_timeout, runtime).await;
        client.prepares.store(prepares, Ordering::Relaxed);
        Ok(client)
    }

    /// Fails if a superuser would run functions that another role has made.
    async fn check_owner(&self) -> Result<(), Error> {
        let row = self.plain(sql::OWNER.to_owned()).await?;
        let owner: Option<String> = row.try_get("owner").map_err(translate)?;
        owner.map_or(Ok(()), |owner| {
            let why = format!(
                "its schema `fenced` belongs to {owner:?}, whose code a superuser must not run: \
                 log in as another role"
            );
            Err(Error::not_applied(ErrorKind::Refused).because(why))
        })
    }

    /// Reads the database's clock and the version of its interface. Returns whether sessions are at
    /// READ COMMITTED. Fails if the server takes no writes.
    pub(super) async fn check_server(&self) -> Result<bool, Error> {
        let at = self.runtime.now();
        let row = self.plain(sql::WELCOME.to_owned()).await?;
        let version: i32 = row.try_get("version").map_err(translate)?;
        if version != VERSION {
            let why = format!(
                "its schema `fenced` has version {version} of the lock functions, and this program \
                 needs {VERSION}: use programs and migrations of one release"
            );
            return Err(Error::not_applied(ErrorKind::Refused).because(why));
        }
        if row.try_get::<&str, _>("read_only").map_err(translate)? == "on" {
            let error = Error::not_applied(ErrorKind::Unavailable);
            return Err(error.because(TAKES_NO_WRITES));
        }
        let micros: i64 = row.try_get("unix_micros").map_err(translate)?;
        let unix = Duration::from_micros(micros.unsigned_abs());
        *lock(&self.server_time) = ClockSample { unix, at };
        let isolation: &str = row.try_get("isolation").map_err(translate)?;
        Ok(isolation == "read committed")
    }

    /// The time, by the database's clock, until which a request that is sent now may come into
    /// effect: a pooler may keep it for minutes.
    pub(super) fn not_after(&self) -> Value {
        let ClockSample { unix, at } = *lock(&self.server_time);
        Value::Time(unix + self.runtime.now().since(at) + REQUEST_TTL)
    }

    /// Sends a call, and waits for its answer. If the caller goes away meanwhile, the request goes
    /// on: its connection is free again only when it was answered, or is closed.
    pub(super) async fn rows(&self, call: Call) -> Result<Vec<PgRow>, Error> {
        self.request(Request::Call(call.of(&self.names))).await
    }

    /// The same for a call that has one row for an answer.
    pub(super) async fn one(&self, call: Call) -> Result<PgRow, Error> {
        only(self.rows(call).await?)
    }

    /// Sends a statement that is no call, and has one row for an answer.
    pub(super) async fn plain(&self, sql: String) -> Result<PgRow, Error> {
        only(self.request(Request::Plain(sql)).await?)
    }

    async fn request(&self, request: Request) -> Result<Vec<PgRow>, Error> {
        let (connections, prepares) = (self.connections.clone(), Arc::clone(&self.prepares));
        let (runtime, timeout) = (Arc::clone(&self.runtime), self.response_timeout);
        let sent = send(connections, runtime, timeout, prepares, request);
        let answer = self.tasks.run_to_end(sent).await;
        answer.map_err(|ended| Error::unknown(ErrorKind::ShutDown).caused_by(ended))?
    }
}

fn only(mut rows: Vec<PgRow>) -> Result<PgRow, Error> {
    rows.pop()
        .ok_or_else(|| Error::unknown(ErrorKind::Refused).because("the database gave no answer"))
}

enum Request {
    Call(Call),
    Plain(String),
}

impl Request {
    /// If a session turns out to be unfit for prepared statements, it gets the same call in the
    /// simple protocol, and so do all calls after it.
    async fn fetch(
        self,
        connection: &mut PgConnection,
        prepares: &AtomicBool,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let text = match self {
            Self::Plain(sql) => sql,
            Self::Call(call) => {
                if prepares.load(Ordering::Relaxed) {
                    let (sql, arguments) = call.prepared().map_err(sqlx::Error::Encode)?;
                    let query = sqlx::query_with(sql, arguments);
                    match query.fetch_all(&mut *connection).await {
                        Err(error) if is_not_for_prepared(&error) => {}
                        answer => return answer,
                    }
                    prepares.store(false, Ordering::Relaxed);
                }
                call.text()
            }
        };
        let query = sqlx::raw_sql(AssertSqlSafe(text));
        unlogged(query.fetch_all(connection)).await
    }
}

async fn send(
    connections: Connections,
    runtime: Arc<dyn Runtime>,
    timeout: Duration,
    prepares: Arc<AtomicBool>,
    request: Request,
) -> Result<Vec<PgRow>, Error> {
    let mut connection = connections.take(timeout).await?;
    let query = request.fetch(&mut connection, &prepares);
    match runtime.timeout(timeout, query).await {
        Some(Ok(rows)) => Ok(rows),
        Some(Err(error)) => {
            if is_session_over(&error) {
                connection.close_on_drop();
            }
            Err(translate(error))
        }
        None => {
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
