//! SQLite. `BEGIN IMMEDIATE` makes a transaction the only writer of the file. So a plain read of
//! the mark inside it is a check that holds until the transaction ends.

mod claim;
mod error;
mod installation;
mod protect;
mod tx;

use std::time::Duration;

use lock_core::{ResourceName, Sequencer};
use sqlx::{
    Connection, Executor, Sqlite, SqliteConnection, SqlitePool,
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqliteQueryResult, SqliteSynchronous,
        SqliteTransactionManager,
    },
};
use sqlx_core::transaction::TransactionManager;
use tracing::{debug, warn};

pub(crate) use self::error::classify;
use self::{error::no_transaction, tx::LEAVE};
use crate::{
    FenceError, FencedLocks, FencedStore,
    admin::by_statements::Wording,
    begin_request::{BeginRequest, Fence},
    dialect::sealed::{Errors, Operations},
    leaked::{begin_unfenced, past_leaked, to_read},
    literal::literal,
    marks,
    open_tx::{OpenTx, RollBack},
    rule::{self, Claim},
};

/// A fenced store in an SQLite file.
///
/// A fenced transaction keeps out all other writers of the file, whatever their resource. So does a
/// process that is stopped inside one: claims are [`Busy`](FenceError::Busy) until it continues or
/// ends. SQLite has no remedy for that.
///
/// When a statement fails, SQLite may end the transaction by itself: because of `RAISE(ROLLBACK)`
/// or `ON CONFLICT ROLLBACK`, a full disk, an I/O error, lack of memory, or an interrupt. Later
/// statements are then written unfenced. The commit reports this, but too late: roll back
/// after any error.
pub type SqliteFencedStore = FencedStore<Sqlite>;

/// A lock service combined with a fenced store in an SQLite file.
pub type SqliteFencedLocks = FencedLocks<Sqlite>;

impl FencedStore<Sqlite> {
    /// Sets what a fenced store needs of a connection: a write-ahead log, so that readers do not
    /// block writers; `synchronous = FULL`, without which a power cut may take back a mark; and the
    /// time for which a writer waits for another one, 5 s.
    #[must_use]
    pub fn recommended(options: SqliteConnectOptions) -> SqliteConnectOptions {
        options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
    }
}

/// All tables of ours are named with their file: an attached one never comes before it, but a TEMP
/// table of the same name does.
impl Operations for Sqlite {
    type TxOptions = ();

    const ISSUER: &'static str = "SELECT name FROM main.fenced_lock_service";

    fn rows_affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }

    fn mark(resource: &ResourceName) -> String {
        let resource = literal(resource.as_str());
        format!(
            "SELECT token, issuer, holder FROM main.fenced_high_water_mark \
             WHERE resource = {resource}"
        )
    }

    async fn claim(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        // A claim that cannot win is refused before it queues for the file.
        let mark = Self::mark(sequencer.resource());
        let seen = marks::mark::<Self>(&mut *to_read(pool).await?, &mark).await?;
        rule::claim(seen.as_ref(), sequencer)?;

        let mut tx = begin_unfenced(pool).await?;
        claim::check_issuer(&mut tx, sequencer).await?;
        let mark = marks::mark::<Self>(&mut tx, &mark).await?;
        match rule::claim(mark.as_ref(), sequencer)? {
            Claim::Replay => {}
            Claim::Raise => claim::raise(&mut tx, sequencer).await?,
        }
        Ok(tx.commit().await?)
    }

    /// A transaction is the only writer of the file: once this one has begun, all others are over.
    async fn settle(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        let mark = marks::mark::<Self>(&mut tx, &Self::mark(sequencer.resource())).await?;
        rule::check(mark.as_ref(), sequencer)?;
        Ok(tx.rollback().await?)
    }

    /// As the only writer of the file. If there are triggers that look for it, also notes the
    /// grants: the commit has to delete the note.
    async fn begin(
        pool: &SqlitePool,
        (): &(),
        request: &BeginRequest,
    ) -> Result<OpenTx<Self>, FenceError> {
        let begun = past_leaked(pool, || tx::only_writer(pool, request)).await;
        let (mut tx, first_mark) = begun.map_err(Self::of_our_call)?;
        let mut is_noted = tx::check(first_mark, request.first().sequencer())?;
        for sequencer in request.others().iter().map(Fence::sequencer) {
            let mark = tx::row(&mut tx, include_str!("sql/mark.sql"), sequencer.resource()).await;
            is_noted |= tx::check(mark.map_err(Self::of_our_call)?, sequencer)?;
        }
        if is_noted {
            tx::note(&mut tx, request).await?;
            tx.noted();
        }
        Ok(tx)
    }

    async fn commit(mut tx: OpenTx<Self>) -> Result<(), FenceError> {
        let is_noted = tx.tx_name().is_noted();
        let Err(source) = tx::commit(&mut tx, is_noted).await else {
            tx.end();
            return Ok(());
        };
        if error::no_savepoint(&source) {
            leave(&mut tx, is_noted).await;
            return Err(FenceError::Aborted);
        }
        Err(Self::of_commit(source))
    }

    /// Rolls it back, and does not close the connection: with that of a database in memory, its
    /// data would be gone. A `ROLLBACK` fails if there is no transaction.
    async fn refuse_leaked(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        while connection.is_in_transaction() {
            match SqliteTransactionManager::rollback(connection).await {
                // SQLite has ended it by itself, and sqlx goes on counting.
                Err(error) if no_transaction(&error) => {
                    connection.execute("BEGIN").await?;
                }
                result => result?,
            }
        }
        match connection.execute("ROLLBACK").await {
            Err(error) if no_transaction(&error) => Ok(()),
            result => result.map(drop),
        }
    }
}

impl RollBack for Sqlite {
    /// The thread of the connection executes it after the statements that were dropped.
    async fn undo(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        connection.execute("ROLLBACK").await.map(drop)
    }
}

/// Nobody logs in to a file. How long to wait for it is a setting of the connection.
impl Wording for Sqlite {
    const WHO: &'static str = "NULL";
    const NOW: &'static str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
    const SHARED: &'static str = "";
    const EXCLUSIVE: &'static str = "";
    const SCHEMA: &'static str = "main.";
    const LATER: &'static str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', (? / 1000.0) || ' seconds')";
    const INSERT_NEW: &'static str = "INSERT OR IGNORE INTO";
    const IS_TIME_SLOT: &'static str = "slot GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T\
        [0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z'";

    /// The columns of SQLite have values of every type.
    fn integer(value: &str) -> String {
        format!("CAST({value} AS INTEGER)")
    }

    fn text_of(value: &str) -> String {
        format!("CAST({value} AS TEXT)")
    }

    /// A day of the Julian calendar, of which 1970 is one.
    fn millis(time: &str) -> String {
        format!("CAST(ROUND((julianday({time}) - 2440587.5) * 86400000) AS INTEGER)")
    }

    fn limit(_: Option<Duration>) -> String {
        String::new()
    }
}

/// A statement that ended the transaction may have committed its note of the grants.
async fn leave(connection: &mut SqliteConnection, is_noted: bool) {
    if let Err(error) = connection.execute("ROLLBACK").await {
        debug!(%error, "a transaction that was ended inside was the last one");
    }
    if is_noted && let Err(error) = connection.execute(LEAVE).await {
        warn!(%error, "a transaction that was ended inside has left its note of the grants");
    }
}
