use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Error,
    backend::{
        BoxFuture, Runtime,
        support::{
            Tasks,
            connecting::Settings,
            database::{
                Call, Database, LeaseNames, Procedures, Renewal, Row as _, ServerClock, Waiters,
                no_answer, only,
            },
            unlogged,
        },
    },
};
use sqlx::{AssertSqlSafe, PgConnection, postgres::PgRow};

use super::{
    call,
    connections::Connections,
    error::{is_not_for_prepared, is_session_over, translate},
    listener::{self, ListenAddress},
    own_session::is_own_session,
    row::Row,
};

/// Sends requests to the database. Each runs on a task that brings it to its end.
pub(super) struct Client {
    connections: Connections,
    tasks: Tasks,
    names: LeaseNames,
    pub(super) response_timeout: Duration,
    /// Whether statements can be prepared.
    prepares: Arc<AtomicBool>,
    pub(super) clock: ServerClock,
    /// The channel of notices about turns. Each client has one.
    channel: String,
    pub(super) listen_address: ListenAddress,
    /// Whether notices arrive.
    pub(super) listens: AtomicBool,
}

impl Client {
    pub(super) async fn connect(
        connections: Connections,
        listen_address: ListenAddress,
        settings: &Settings,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let client = Self {
            connections,
            channel: format!("fenced_{:016x}", runtime.random() >> 64),
            tasks: Tasks::here(runtime),
            names: LeaseNames::new(&settings.prefix),
            response_timeout: settings.response_timeout,
            prepares: Arc::default(),
            clock: ServerClock::default(),
            listen_address,
            listens: AtomicBool::new(false),
        };
        client.check_owner().await?;
        let is_read_committed = client.check_server().await?;
        let (address, timeout) = (client.connections.address(), client.response_timeout);
        let prepares =
            is_read_committed && is_own_session(&address, timeout, &**client.runtime()).await;
        client.prepares.store(prepares, Ordering::Relaxed);
        Ok(client)
    }

    pub(super) const fn runtime(&self) -> &Arc<dyn Runtime> {
        self.tasks.runtime()
    }

    /// Sends a statement that is no call, and whose answer is one row.
    pub(super) async fn plain(&self, sql: String) -> Result<Row, Error> {
        only(self.request(Request::Plain(sql)).await?)
    }

    /// Sends a request. If the caller goes away, the request goes on. Its connection is free again
    /// only after the answer, or it is closed.
    async fn request(&self, request: Request) -> Result<Vec<Row>, Error> {
        let (connections, prepares) = (self.connections.clone(), Arc::clone(&self.prepares));
        let (runtime, timeout) = (Arc::clone(self.runtime()), self.response_timeout);
        let sent = send(connections, runtime, timeout, prepares, request);
        let rows = self.tasks.run_to_end(sent).await??;
        Ok(rows.into_iter().map(Row).collect())
    }
}

impl Database for Client {
    type Row = Row;

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn names(&self) -> &LeaseNames {
        &self.names
    }

    fn longest_pause(&self) -> Option<Duration> {
        const WITHOUT_NOTICES: Duration = Duration::from_millis(250);
        (!self.listens.load(Ordering::Relaxed)).then_some(WITHOUT_NOTICES)
    }

    fn listen(waiters: Arc<Waiters<Self>>) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(listener::listen(waiters)))
    }
}

impl Procedures for Client {
    async fn rows(&self, call: Call) -> Result<Vec<Row>, Error> {
        self.request(Request::Call(call)).await
    }

    fn name(&self) -> &str {
        &self.channel
    }

    fn clock(&self) -> &ServerClock {
        &self.clock
    }

    async fn read_clock(&self) -> Result<(), Error> {
        self.check_server().await.map(drop)
    }

    fn renewals(rows: Vec<Row>, count: usize) -> Result<Vec<Renewal>, Error> {
        let mut renewals = vec![Renewal::Busy; count];
        for row in rows {
            let place = usize::try_from(row.number("place")?).unwrap_or(0);
            let renewal = match &*row.text("outcome")? {
                "renewed" => Renewal::Renewed,
                "not_holder" => Renewal::NotHolder,
                _busy => Renewal::Busy,
            };
            // Places begin at 1.
            if let Some(at) = place
                .checked_sub(1)
                .and_then(|place| renewals.get_mut(place))
            {
                *at = renewal;
            }
        }
        Ok(renewals)
    }
}

enum Request {
    Call(Call),
    Plain(String),
}

impl Request {
    /// Sends a request on this connection. If the session turns out to be unfit for prepared
    /// statements, the call is sent again in the simple protocol, and all later calls use that
    /// protocol.
    async fn fetch(
        self,
        connection: &mut PgConnection,
        prepares: &AtomicBool,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let text = match self {
            Self::Plain(sql) => sql,
            Self::Call(call) => {
                if prepares.load(Ordering::Relaxed) {
                    let (sql, arguments) = call::prepared(&call).map_err(sqlx::Error::Encode)?;
                    let query = sqlx::query_with(sql, arguments);
                    match query.fetch_all(&mut *connection).await {
                        Err(error) if is_not_for_prepared(&error) => {}
                        answer => return answer,
                    }
                    prepares.store(false, Ordering::Relaxed);
                }
                call::text(&call)
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
            Err(no_answer(timeout))
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
