//! The steps of one holder.

use fenced_store::{FenceError, FencedStore, FencedTx};
use lock_core::Sequencer;
use sqlx::pool::PoolConnection;

use crate::{
    interleavings::{
        order::Who,
        world::{NaiveBegin, World},
    },
    rule,
};

/// How a holder checks that it may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// The holder checks by `FencedStore::begin`.
    Fenced,
    /// The control: the holder reads the mark in its transaction, which is the naive way.
    PlainSelect,
}

/// The result of a step.
pub(crate) enum Step {
    Taken,
    /// Nothing happened, because the other holder is in the way. The step has to be taken again
    /// when the other holder has moved.
    Blocked,
    Ended(End),
}

/// How the section of a holder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    /// The mark does not show the grant of the holder, or not any more.
    Refused,
    /// The transaction of the holder clashed with that of the other one.
    Clashed,
}

/// How far a holder has got with its section.
enum Stage<W: World> {
    Out,
    In(FencedTx<W::Db>),
    /// A connection, and whether the holder has begun a transaction on it.
    NaivelyIn(PoolConnection<W::Db>, bool),
}

/// A holder and its section.
pub(crate) struct HolderOf<W: World> {
    who: Who,
    check: Check,
    store: FencedStore<W::Db>,
    grant: Sequencer,
    /// The number of the run. Rows of other runs do not count.
    run: usize,
    stage: Stage<W>,
    /// Whether the holder has seen the row of the other holder.
    pub(crate) saw_the_other: bool,
}

impl<W: World> HolderOf<W> {
    pub(crate) fn new(world: &W, who: Who, check: Check, run: usize) -> Self {
        Self {
            who,
            check,
            store: world.store(who).clone(),
            grant: grant(run, who.token()),
            run,
            stage: Stage::Out,
            saw_the_other: false,
        }
    }

    /// Claims, as every holder does once.
    pub(crate) async fn claim(&self) -> Result<(), FenceError> {
        self.store.claim(&self.grant).await
    }

    /// Whether the holder may be in the way of the other holder.
    pub(crate) const fn is_inside(&self) -> bool {
        matches!(self.stage, Stage::In(_) | Stage::NaivelyIn(_, true))
    }

    /// Takes the next of the four steps.
    pub(crate) async fn step(&mut self, number: usize) -> Step {
        let taken = match number {
            0 => self.begin().await,
            1 => self.read().await,
            2 => self.insert().await,
            _ => self.commit().await,
        };
        match taken {
            Ok(step) => step,
            // Another transaction was under way: SQLite, which does not wait here.
            Err(FenceError::Busy { .. }) => Step::Blocked,
            Err(error) => {
                self.roll_back().await;
                Step::Ended(match error {
                    error if error.is_fenced() => End::Refused,
                    FenceError::Serialization { .. } => End::Clashed,
                    error => panic!("{:?}: {error:?}", self.who),
                })
            }
        }
    }

    async fn begin(&mut self) -> Result<Step, FenceError> {
        // The older holder claimed when it was the newest.
        if self.who == Who::New {
            self.claim().await?;
        }
        match self.check {
            Check::Fenced => self.stage = Stage::In(self.store.begin(&self.grant).await?),
            Check::PlainSelect => {
                let connection = self.store.pool().acquire().await?;
                self.stage = Stage::NaivelyIn(connection, false);
                if let NaiveBegin::First(begin) = W::NAIVE_BEGIN {
                    self.begin_naively(begin).await?;
                }
                let (marks, resource) = (W::MARKS, self.grant.resource());
                let mark = format!("SELECT token FROM {marks} WHERE resource = '{resource}'");
                let mark = W::number(self.connection(), mark).await?;
                if mark > i64::from(self.grant.token()) {
                    self.roll_back().await;
                    return Ok(Step::Ended(End::Refused));
                }
            }
        }
        Ok(Step::Taken)
    }

    async fn begin_naively(&mut self, begin: &str) -> Result<(), FenceError> {
        W::execute(self.connection(), begin.to_owned()).await?;
        if let Stage::NaivelyIn(_, begun) = &mut self.stage {
            *begun = true;
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<Step, FenceError> {
        let (run, other) = (self.run, self.who.other().token());
        let rows = format!("SELECT count(*) FROM journal WHERE run = {run} AND who = {other}");
        let rows = W::number(self.connection(), rows).await?;
        self.saw_the_other = rows != 0;
        Ok(Step::Taken)
    }

    async fn insert(&mut self) -> Result<Step, FenceError> {
        if let (Check::PlainSelect, NaiveBegin::AtTheWrite(begin)) = (self.check, W::NAIVE_BEGIN) {
            self.begin_naively(begin).await?;
        }
        let (run, own) = (self.run, self.who.token());
        let row = format!("INSERT INTO journal (run, who) VALUES ({run}, {own})");
        W::execute(self.connection(), row).await?;
        Ok(Step::Taken)
    }

    async fn commit(&mut self) -> Result<Step, FenceError> {
        match std::mem::replace(&mut self.stage, Stage::Out) {
            Stage::In(tx) => drop(tx.commit().await?),
            Stage::NaivelyIn(mut connection, begun) => {
                if let Err(error) = W::execute(&mut connection, "COMMIT".to_owned()).await {
                    self.stage = Stage::NaivelyIn(connection, begun);
                    return Err(error.into());
                }
            }
            Stage::Out => panic!("{:?} commits what it has not begun", self.who),
        }
        Ok(Step::Ended(End::Committed))
    }

    /// Waits until the rollback is done, so that nothing of this holder is in the way of the other
    /// holder.
    async fn roll_back(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Out) {
            Stage::Out | Stage::NaivelyIn(_, false) => {}
            Stage::In(tx) => tx.rollback().await.unwrap(),
            Stage::NaivelyIn(mut connection, true) => {
                W::execute(&mut connection, "ROLLBACK".to_owned())
                    .await
                    .unwrap();
            }
        }
    }

    fn connection(&mut self) -> &mut <W::Db as sqlx::Database>::Connection {
        match &mut self.stage {
            Stage::In(tx) => tx,
            Stage::NaivelyIn(connection, _) => connection,
            Stage::Out => panic!("{:?} has not begun", self.who),
        }
    }
}

/// A grant of a fresh holder, of a resource that only this run uses.
pub(crate) fn grant(run: usize, token: u64) -> Sequencer {
    rule::grant(&format!("journal:{run}"), token)
}
