use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    Error, ErrorKind,
    backend::{
        Moment, Runtime,
        support::{LeaseNames, Tasks, connecting::Settings, lock, unlogged},
    },
};
use sqlx::AssertSqlSafe;

use super::{connections::Connections, error::translate, row::Row};

/// For so long after it was sent a request to acquire may come into effect. Tombstones last longer.
const REQUEST_TTL: Duration = Duration::from_secs(30);

/// Sends requests to the database, each on a task that brings it to its end.
pub(super) struct Client {
    connections: Connections,
    pub(super) tasks: Tasks,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) response_timeout: Duration,
    pub(super) names: LeaseNames,
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
        let client = Self {
            connections,
            tasks: Tasks::here(Arc::clone(&runtime)),
            runtime,
            response_timeout: settings.response_timeout,
            names: LeaseNames::new(&settings.prefix),
            server_time: Mutex::default(),
        };
        client.check_server().await?;
        client.read_clock().await?;
        Ok(client)
    }

    /// A time of the database's clock that was read after this moment.
    pub(super) fn clock_was(&self, unix: Duration, at: Moment) {
        *lock(&self.server_time) = ClockSample { unix, at };
    }

    /// The time, by the database's clock, until which a request that is sent now may come into
    /// effect: a proxy may keep it for minutes.
    pub(super) fn not_after_us(&self) -> i64 {
        let ClockSample { unix, at } = *lock(&self.server_time);
        let time = unix + self.runtime.now().since(at) + REQUEST_TTL;
        i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
    }

    /// Sends a statement, and waits for its answer. If the caller goes away meanwhile, the request
    /// goes on: its connection is free again only when it was answered, or is closed.
    pub(super) async fn rows(&self, statement: String) -> Result<Vec<Row>, Error> {
        let (connections, runtime) = (self.connections.clone(), Arc::clone(&self.runtime));
        let sent = send(connections, runtime, self.response_timeout, statement);
        let answer = self.tasks.run_to_end(sent).await;
        answer.map_err(|ended| Error::unknown(ErrorKind::ShutDown).caused_by(ended))?
    }

    /// The same for a statement that has one row for an answer.
    pub(super) async fn one(&self, statement: String) -> Result<Row, Error> {
        let row = self.rows(statement).await?.pop();
        row.ok_or_else(|| Error::unknown(ErrorKind::Refused).because("the database gave no answer"))
    }
}

/// A session that saw an error is closed: a procedure that was interrupted leaves its transaction
/// open there.
async fn send(
    connections: Connections,
    runtime: Arc<dyn Runtime>,
    timeout: Duration,
    statement: String,
) -> Result<Vec<Row>, Error> {
    let mut connection = connections.take().await?;
    let query = sqlx::raw_sql(AssertSqlSafe(statement));
    let query = unlogged(query.fetch_all(&mut *connection));
    let error = match runtime.timeout(timeout, query).await {
        Some(Ok(rows)) => return Ok(rows.into_iter().map(Row::from).collect()),
        Some(Err(error)) => translate(error),
        None => {
            let silent = Error::unknown(ErrorKind::Unavailable);
            silent.because(format!("no answer within {timeout:?}"))
        }
    };
    connection.close_on_drop();
    Err(error)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
