//! A worker that takes one lease after the other, and does not ask whether it still has its lease.

use std::{
    iter::Sum,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use e2e::history::Event;
use fenced_store::{FenceError, PgIsolation, PgTxOptions};
use lock_core::{
    Sequencer,
    backend::{Runtime, TokioRuntime},
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use super::{RESOURCES, Run};
use crate::rule::grant;

/// An idle timeout that is shorter than some of the pauses.
const IDLE_TIMEOUT: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// How a worker checks that it may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Fenced,
    /// The control: by reading the mark in the transaction.
    PlainSelect,
}

/// How transactions and claims of a worker have ended.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) committed: usize,
    pub(super) refused: usize,
    pub(super) clashed: usize,
    pub(super) busy: usize,
    pub(super) terminated: usize,
    pub(super) unknown: usize,
    pub(super) disconnected: usize,
}

/// Works until the run is over.
pub(super) async fn work(run: Arc<Run>, number: usize) -> Tally {
    let number = u64::try_from(number).unwrap();
    let mut worker = Worker {
        random: StdRng::seed_from_u64(run.seed.wrapping_add(number)),
        run,
        tally: Tally::default(),
    };
    while !worker.run.over.load(Ordering::Relaxed) {
        let resource = worker.random.random_range(0..RESOURCES);
        let token = 1 + worker.run.tokens[resource].fetch_add(1, Ordering::Relaxed);
        let grant = grant(&format!("r{resource}"), token);
        let ended = worker.lease(&grant, resource).await;
        worker.tally.add(&ended);
    }
    worker.tally
}

struct Worker {
    run: Arc<Run>,
    random: StdRng,
    tally: Tally,
}

impl Worker {
    /// Claims, and writes until an error comes. After that the worker does not know whether its
    /// last transaction is still under way, so it takes another lease.
    async fn lease(&mut self, grant: &Sequencer, resource: usize) -> Result<(), FenceError> {
        let run = Arc::clone(&self.run);
        let asked = TokioRuntime.now();
        run.store
            .clone()
            .with_options(self.options())
            .claim(grant)
            .await?;
        run.history.claimed(Event::answered(grant, asked));
        for _ in 0..self.random.random_range(1..=4) {
            let (asked, number) = (TokioRuntime.now(), self.random.random::<i64>());
            let is_let_in = match run.check {
                Check::Fenced => self.fenced(grant, resource, number).await?,
                Check::PlainSelect => self.naive(grant, resource, number).await?,
            };
            if !is_let_in {
                self.tally.refused += 1;
                return Ok(());
            }
            run.history.written(Event::answered(grant, asked));
            run.journal.committed(number);
            self.tally.committed += 1;
        }
        Ok(())
    }

    fn options(&mut self) -> PgTxOptions {
        let levels = [
            PgIsolation::ReadCommitted,
            PgIsolation::RepeatableRead,
            PgIsolation::Serializable,
        ];
        PgTxOptions::default()
            .isolation(*levels.choose(&mut self.random).unwrap())
            .lock_timeout(Some(Duration::from_millis(100)))
            .idle_timeout(Some(IDLE_TIMEOUT))
    }

    async fn fenced(
        &mut self,
        grant: &Sequencer,
        resource: usize,
        number: i64,
    ) -> Result<bool, FenceError> {
        let store = self.run.store.clone().with_options(self.options());
        let mut tx = store.begin(grant).await?;
        self.section(&mut tx, grant, resource, number).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn naive(
        &mut self,
        grant: &Sequencer,
        resource: usize,
        number: i64,
    ) -> Result<bool, FenceError> {
        const MARK: &str = "SELECT token FROM fenced.high_water_mark WHERE resource = $1";
        let levels = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
        let level = levels.choose(&mut self.random).unwrap();
        let mut tx = self.run.store.pool().begin().await?;
        let level = format!("SET TRANSACTION ISOLATION LEVEL {level}");
        tx.execute(AssertSqlSafe(level)).await?;
        let mark = sqlx::query_scalar(MARK).bind(grant.resource().as_str());
        let mark: i64 = mark.fetch_one(&mut *tx).await?;
        if mark != i64::from(grant.token()) {
            return Ok(false);
        }
        self.section(&mut tx, grant, resource, number).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Reads, pauses, and writes the number of rows that it has seen.
    async fn section(
        &mut self,
        connection: &mut PgConnection,
        grant: &Sequencer,
        resource: usize,
        number: i64,
    ) -> Result<(), sqlx::Error> {
        const LOOK: &str = "SELECT count(*) FROM journal WHERE resource = $1";
        const WRITE: &str = "INSERT INTO journal VALUES ($1, $2, $3, $4)";
        let resource = i32::try_from(resource).unwrap();
        let look = sqlx::query_scalar(LOOK).bind(resource);
        let rows_seen: i64 = look.fetch_one(&mut *connection).await?;
        let longest = if self.random.random_bool(0.1) {
            LONGEST_PAUSE
        } else {
            LONGEST_PAUSE / 50
        };
        tokio::time::sleep(longest.mul_f64(self.random.random())).await;
        let write = sqlx::query(WRITE).bind(number).bind(resource);
        let write = write.bind(i64::from(grant.token())).bind(rows_seen);
        write.execute(connection).await.map(drop)
    }
}

impl Tally {
    fn add(&mut self, ended: &Result<(), FenceError>) {
        let count = match ended {
            Ok(()) => return,
            Err(error) if error.is_fenced() => &mut self.refused,
            Err(FenceError::Serialization { .. }) => &mut self.clashed,
            Err(FenceError::Busy { .. }) => &mut self.busy,
            Err(FenceError::Terminated { .. }) => &mut self.terminated,
            Err(FenceError::CommitUnknown { .. }) => &mut self.unknown,
            Err(FenceError::Db { source }) if is_of_a_crash(source) => &mut self.disconnected,
            Err(error) => panic!("{error:?}"),
        };
        *count += 1;
    }
}

/// The connection broke, or the server is not up yet.
fn is_of_a_crash(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code == "57P03"),
        _ => false,
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |sum, each| Self {
            committed: sum.committed + each.committed,
            refused: sum.refused + each.refused,
            clashed: sum.clashed + each.clashed,
            busy: sum.busy + each.busy,
            terminated: sum.terminated + each.terminated,
            unknown: sum.unknown + each.unknown,
            disconnected: sum.disconnected + each.disconnected,
        })
    }
}
