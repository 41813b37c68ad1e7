use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use lock_core::{
    Error, ErrorKind,
    backend::{
        Moment, Runtime,
        support::{LeaseNames, Tasks},
    },
};
use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use super::{
    error::{is_busy, of_commit, translate},
    file::File,
    rows::Rows,
};

/// The pauses before a transaction is begun again while another process writes: from this one to
/// ten times as long. SQLite's own wait grows to 100 ms, and one process that writes all the time
/// would keep the others out for seconds.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);

/// How much of a transaction a power cut may take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// Nothing: a holder relies on it.
    Flushed,
    /// All of it: then a lease ends by its ttl, or a waiter takes a place anew.
    Unflushed,
}

/// An answer of the file, once it is read.
type Decided<'a, T> = BoxFuture<'a, sqlx::Result<T>>;

enum Begun {
    Begun(SqliteConnection),
    /// Another transaction writes the file.
    Busy(SqliteConnection),
}

/// Sends requests to the file, each on a task that brings it to its end.
pub(super) struct Client {
    file: File,
    pub(super) tasks: Tasks,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) response_timeout: Duration,
    pub(super) names: LeaseNames,
    /// The requests of this process take turns, first come, first served.
    writer: Mutex<Option<SqliteConnection>>,
    reader: Mutex<Option<SqliteConnection>>,
}

impl Client {
    pub(super) async fn connect(
        file: File,
        names: LeaseNames,
        response_timeout: Duration,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Arc<Self>, Error> {
        let client = Arc::new(Self {
            file,
            tasks: Tasks::here(Arc::clone(&runtime)),
            runtime,
            response_timeout,
            names,
            writer: Mutex::default(),
            reader: Mutex::default(),
        });
        // A file that takes no writes would be opened all the same.
        client
            .write(Durability::Unflushed, |rows| Box::pin(rows.forget()))
            .await?;
        Ok(client)
    }

    /// Microseconds of Unix time.
    pub(super) fn unix_micros(&self) -> i64 {
        i64::try_from(self.runtime.unix_time().as_micros()).unwrap_or(i64::MAX)
    }

    /// Runs one transaction that writes. If the caller goes away meanwhile, it goes on to its end.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        durability: Durability,
        decide: impl for<'r> FnOnce(&'r mut Rows<'_>) -> Decided<'r, T> + Send + 'static,
    ) -> Result<T, Error> {
        let client = Arc::clone(self);
        let transaction = async move {
            let deadline = client.deadline();
            let turn = client.by(deadline, client.writer.lock()).await;
            let mut place = turn.ok_or_else(busy)?;
            client
                .transact(&mut place, deadline, durability, decide)
                .await
        };
        let answer = self.tasks.run_to_end(transaction).await;
        answer.map_err(|ended| Error::unknown(ErrorKind::ShutDown).caused_by(ended))?
    }

    /// The connection goes back to its place unless a statement failed or hangs: then it ends, and
    /// the transaction with it.
    async fn transact<T>(
        &self,
        place: &mut Option<SqliteConnection>,
        deadline: Moment,
        durability: Durability,
        decide: impl for<'r> FnOnce(&'r mut Rows<'_>) -> Decided<'r, T>,
    ) -> Result<T, Error> {
        let begun = self.begin(place.take(), deadline, durability);
        let begun = self.by(deadline, begun).await;
        let mut connection = match begun.ok_or_else(|| silent(self.response_timeout))?? {
            Begun::Begun(connection) => connection,
            Begun::Busy(connection) => {
                *place = Some(connection);
                return Err(busy());
            }
        };
        let mut rows = Rows {
            now: self.unix_micros(),
            connection: &mut connection,
        };
        let decided = self.by(deadline, decide(&mut rows)).await;
        let answer = decided.ok_or_else(|| silent(self.response_timeout))?;
        let answer = answer.map_err(translate)?;
        let commit = sqlx::query("COMMIT").execute(&mut connection);
        let committed = self.by(deadline, commit).await;
        committed
            .ok_or_else(|| silent(self.response_timeout).outcome_unknown())?
            .map_err(of_commit)?;
        *place = Some(connection);
        Ok(answer)
    }

    fn deadline(&self) -> Moment {
        self.runtime.now() + self.response_timeout
    }

    async fn by<T>(&self, deadline: Moment, step: impl Future<Output = T>) -> Option<T> {
        let left = deadline.since(self.runtime.now());
        self.runtime.timeout(left, step).await
    }

    /// Begins a transaction as the only writer of the file.
    async fn begin(
        &self,
        connection: Option<SqliteConnection>,
        deadline: Moment,
        durability: Durability,
    ) -> Result<Begun, Error> {
        let mut connection = match connection {
            Some(connection) => connection,
            None => self.file.open_writer().await?,
        };
        let synchronous = match durability {
            Durability::Flushed => "PRAGMA main.synchronous = FULL",
            Durability::Unflushed => "PRAGMA main.synchronous = NORMAL",
        };
        let set = sqlx::query(synchronous).execute(&mut connection).await;
        set.map_err(translate)?;
        loop {
            let begin = sqlx::query("BEGIN IMMEDIATE");
            match begin.execute(&mut connection).await {
                Ok(_) => return Ok(Begun::Begun(connection)),
                Err(error) if !is_busy(&error) => return Err(translate(error)),
                Err(_) => {
                    let pause = SHORTEST_PAUSE.mul_f64(1.0 + 9.0 * self.runtime.dice());
                    let then = self.runtime.now() + pause;
                    if then >= deadline {
                        return Ok(Begun::Busy(connection));
                    }
                    self.runtime.sleep_until(then).await;
                }
            }
        }
    }

    /// Reads, beside a transaction that may be writing.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl for<'c> FnOnce(&'c mut SqliteConnection) -> Decided<'c, T> + Send + 'static,
    ) -> Result<T, Error> {
        let client = Arc::clone(self);
        let reading = async move {
            let mut place = client.reader.lock().await;
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => client.file.open_reader().await?,
            };
            let answer = read(&mut connection).await.map_err(translate)?;
            *place = Some(connection);
            Ok(answer)
        };
        let (runtime, timeout) = (Arc::clone(&self.runtime), self.response_timeout);
        let answer = self.tasks.run_to_end(async move {
            let answer = runtime.timeout(timeout, reading).await;
            answer.unwrap_or_else(|| Err(silent(timeout)))
        });
        let answer = answer.await;
        answer.map_err(|ended| Error::not_applied(ErrorKind::ShutDown).caused_by(ended))?
    }
}

fn busy() -> Error {
    Error::not_applied(ErrorKind::Unavailable).because("another transaction writes the file")
}

fn silent(timeout: Duration) -> Error {
    let silent = Error::not_applied(ErrorKind::Unavailable);
    silent.because(format!("no answer of the file within {timeout:?}"))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
