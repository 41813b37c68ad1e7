use std::{fmt, sync::Arc, time::Duration};

use lock_core::{
    Error,
    backend::{
        Runtime,
        support::{
            Tasks,
            connecting::Settings,
            database::{
                Call, Database, LeaseNames, Procedures, Renewal, Row as _, ServerClock, no_answer,
                only,
            },
            unlogged,
        },
    },
};
use sqlx::{AssertSqlSafe, mysql::MySqlRow};

use super::{call::statement, connections::Connections, error::translate, row::Row};

/// Sends requests to the database. Each runs on a task that brings it to its end.
pub(super) struct Client {
    connections: Connections,
    tasks: Tasks,
    names: LeaseNames,
    response_timeout: Duration,
    pub(super) clock: ServerClock,
    /// The name that distinguishes the waiters of this process.
    name: String,
}

impl Client {
    pub(super) async fn connect(
        connections: Connections,
        settings: &Settings,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let client = Self {
            connections,
            name: format!("{:032x}", runtime.random()),
            tasks: Tasks::here(runtime),
            names: LeaseNames::new(&settings.prefix),
            response_timeout: settings.response_timeout,
            clock: ServerClock::default(),
        };
        client.check_server().await?;
        client.read_clock().await?;
        Ok(client)
    }

    /// Sends a statement, and waits for its answer. If the caller goes away, the request goes on.
    /// Its connection is free again only after the answer, or it is closed.
    pub(super) async fn send(&self, statement: String) -> Result<Vec<Row>, Error> {
        let (connections, runtime) = (self.connections.clone(), Arc::clone(self.tasks.runtime()));
        let sent = send(connections, runtime, self.response_timeout, statement);
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
        const LONGEST_PAUSE: Duration = Duration::from_millis(250);
        Some(LONGEST_PAUSE)
    }
}

impl Procedures for Client {
    async fn rows(&self, call: Call) -> Result<Vec<Row>, Error> {
        self.send(statement(&call)).await
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn clock(&self) -> &ServerClock {
        &self.clock
    }

    async fn read_clock(&self) -> Result<(), Error> {
        self.read_version_and_clock().await
    }

    fn renewals(rows: Vec<Row>, _count: usize) -> Result<Vec<Renewal>, Error> {
        let letters = only(rows)?.text("outcomes")?;
        let renewals = letters.chars().map(|letter| match letter {
            'r' => Renewal::Renewed,
            'n' => Renewal::NotHolder,
            _busy => Renewal::Busy,
        });
        Ok(renewals.collect())
    }
}

/// Sends a statement on this connection. A session that saw an error is closed, because a procedure
/// that was interrupted leaves its transaction open.
async fn send(
    connections: Connections,
    runtime: Arc<dyn Runtime>,
    timeout: Duration,
    statement: String,
) -> Result<Vec<MySqlRow>, Error> {
    let mut connection = connections.take().await?;
    let query = sqlx::raw_sql(AssertSqlSafe(statement));
    let query = unlogged(query.fetch_all(&mut *connection));
    let error = match runtime.timeout(timeout, query).await {
        Some(Ok(rows)) => return Ok(rows),
        Some(Err(error)) => translate(error),
        None => no_answer(timeout),
    };
    connection.close_on_drop();
    Err(error)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
