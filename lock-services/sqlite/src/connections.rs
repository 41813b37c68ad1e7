use std::{sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind,
    backend::{BoxFuture, Moment, Runtime},
};
use sqlx::SqliteConnection;
use tokio::sync::Mutex;

use super::{
    error::{is_busy, of_commit, translate},
    file::File,
    requests::Decision,
    rows::Rows,
};

/// The shortest pause before a transaction is begun again while another process writes. The longest
/// is ten times as long. SQLite's own pauses grow to 100 ms, so a process that writes all the time
/// would keep the others out for seconds.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);

/// Whether a power cut may take a transaction back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It may not, because a holder relies on the transaction.
    Flushed,
    /// It may. Then a lease ends by its ttl, or a waiter takes a new place.
    Unflushed,
}

/// The decision of a transaction.
pub(super) type Decided<'r, T> = BoxFuture<'r, Decision<T>>;

/// An answer that changes nothing.
pub(super) type Read<'c, T> = BoxFuture<'c, sqlx::Result<T>>;

enum Begun {
    Begun(SqliteConnection),
    /// Another transaction writes the file.
    Busy(SqliteConnection),
}

/// The two connections to the file: one writes, and the other can read at the same time.
pub(super) struct Connections {
    file: File,
    runtime: Arc<dyn Runtime>,
    response_timeout: Duration,
    /// The requests of this process take turns, first come, first served.
    writer: Mutex<Option<SqliteConnection>>,
    reader: Mutex<Option<SqliteConnection>>,
}

impl Connections {
    pub(super) fn to(file: File, response_timeout: Duration, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            file,
            runtime,
            response_timeout,
            writer: Mutex::default(),
            reader: Mutex::default(),
        }
    }

    /// Microseconds of Unix time.
    pub(super) fn unix_micros(&self) -> i64 {
        i64::try_from(self.runtime.unix_time().as_micros()).unwrap_or(i64::MAX)
    }

    /// Runs one transaction that writes.
    pub(super) async fn write<T>(
        &self,
        durability: Durability,
        decide: impl for<'r> FnOnce(&'r mut Rows<'_>) -> Decided<'r, T>,
    ) -> Result<T, Error> {
        let deadline = self.runtime.now() + self.response_timeout;
        let turn = self.by(deadline, self.writer.lock()).await;
        let mut place = turn.ok_or_else(busy)?;
        self.transact(&mut place, deadline, durability, decide)
            .await
    }

    /// Runs one transaction on the connection in this place. The connection goes back to its place
    /// unless a statement failed or hangs. In that case the connection is closed, which ends the
    /// transaction.
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
        let answer = decided
            .ok_or_else(|| silent(self.response_timeout))?
            .map_err(translate)?;
        let commit = sqlx::query("COMMIT").execute(&mut connection);
        let committed = self.by(deadline, commit).await;
        committed
            .ok_or_else(|| silent(self.response_timeout).outcome_unknown())?
            .map_err(of_commit)?;
        *place = Some(connection);
        answer
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

    /// Reads, while another transaction may be writing.
    pub(super) async fn read<T>(
        &self,
        read: impl for<'c> FnOnce(&'c mut SqliteConnection) -> Read<'c, T>,
    ) -> Result<T, Error> {
        let reading = async {
            let mut place = self.reader.lock().await;
            let mut connection = match place.take() {
                Some(connection) => connection,
                None => self.file.open_reader().await?,
            };
            let answer = read(&mut connection).await.map_err(translate)?;
            *place = Some(connection);
            Ok(answer)
        };
        let answer = self.runtime.timeout(self.response_timeout, reading).await;
        answer.unwrap_or_else(|| Err(silent(self.response_timeout)))
    }
}

fn busy() -> Error {
    Error::not_applied(ErrorKind::Unavailable).because("another transaction writes the file")
}

fn silent(timeout: Duration) -> Error {
    let silent = Error::not_applied(ErrorKind::Unavailable);
    silent.because(format!("no answer of the file within {timeout:?}"))
}
