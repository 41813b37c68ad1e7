use std::collections::BTreeSet;

use lock_core::backend::{Acquisition, Grant, Moment, Reply, Sharing, Terms, Wait, Wake};

use super::{
    BOUNDS, Caller, Machines, May, NOW, Patience, TTL,
    database::Database,
    server::{Copy, Server, Tables},
    ticks,
};
use crate::set::Set;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) server: Server,
    /// Only if the database has faults.
    pub(super) database: Option<Box<Database>>,
    pub(super) clients: Vec<Client>,
    pub(super) faults: u8,
    pub(super) had_accident: bool,
    /// The common task has no answer.
    pub(super) silent: bool,
    /// The greatest token that any caller knows.
    pub(super) greatest: u64,
    /// The tokens of acquisitions with several attempts.
    pub(super) told: Vec<Option<u64>>,
    /// Acquisitions whose lease ended by their own release.
    pub(super) by_release: Set,
    /// Processes that let an offer run out, or could not be reached, since their last look.
    pub(super) paused: Set,
    pub(super) broken: BTreeSet<Lie>,
}

/// A wrong step. It is wrong whatever state it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Lie {
    OutOfOrder,
    SecondToken,
    ReplayActed,
    LossIsReleased,
    ReleaseIsLoss,
    SilenceUnbounded,
    StrangerEnded,
    EndedUnderHolder,
    RefusedForNothing,
    Overtaken,
    PauseIsDear,
    LeftFree,
    Revived,
    Stale,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) machine: Acquisition,
    pub(super) stage: Stage,
    /// The request whose answer is awaited, and when it was sent; then its answer.
    pub(super) sent: Option<(Copy, Moment)>,
    pub(super) reply: Option<Reply>,
    /// Copies of requests that may arrive at any time, and as often as the network likes.
    pub(super) late: BTreeSet<Copy>,
    /// Wake-ups that may arrive at any time.
    pub(super) wakes: Vec<Wake>,
    pub(super) until: Moment,
    /// When the wait has to be over.
    pub(super) end: Moment,
    /// The greatest token of another acquisition that any caller knew when this attempt began.
    pub(super) floor: u64,
    /// Whether the lease lived when its release began, and whether the caller relied on it.
    pub(super) released: Option<(bool, bool)>,
    /// The manager has shut down: there is no watchdog.
    pub(super) is_closed: bool,
    /// Only with [`Flaw::OldSnapshot`](super::Flaw): a look that waits for the mutex.
    pub(super) snapshot: Option<Box<Tables>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    New,
    Waiting,
    Holding(Grant),
    /// The caller gives the lease with this token back, and waits for the answer.
    GivingBack(u64),
    /// The caller has gone, and the machine goes on. It may have the lease with this token.
    Background(u64),
    /// The attempt is over. Its caller was answered that nothing is left, or was not.
    Over {
        clean: bool,
    },
    /// The process has died, or only the attempt does nothing any more.
    Dead {
        looks: bool,
    },
}

impl State {
    pub(super) fn new(model: &Machines) -> Self {
        let clients = (0..model.callers.len()).map(|client| Client::new(model, client));
        Self {
            server: Server::default(),
            database: model.has_database().then(Box::default),
            clients: clients.collect(),
            faults: model.faults,
            had_accident: false,
            silent: false,
            greatest: 0,
            told: vec![None; model.callers.len()],
            by_release: Set::EMPTY,
            paused: Set::EMPTY,
            broken: BTreeSet::new(),
        }
    }

    pub(super) fn blame(&mut self, lie: Lie, wrong: bool) {
        if wrong {
            self.broken.insert(lie);
        }
    }

    /// Whether a crash has taken back an effect that was answered.
    pub(super) fn forgot(&self) -> bool {
        self.database.as_ref().is_some_and(|it| it.forgot)
    }

    pub(super) fn was_promoted(&self) -> bool {
        self.database.as_ref().is_some_and(|it| it.was_promoted)
    }
}

impl Client {
    pub(super) fn new(model: &Machines, client: usize) -> Self {
        let Caller {
            patience,
            acquisition,
            ..
        } = model.callers[client];
        let sharing = match model.is_shared(acquisition) {
            true => Sharing::Repeated,
            false => Sharing::Alone,
        };
        Self::of(patience, sharing)
    }

    pub(super) fn of(patience: Patience, sharing: Sharing) -> Self {
        let mut terms = Terms::new(sharing, lock_core::Ttl::secs(1));
        (terms.bounds, terms.ttl, terms.late_grants) = (&BOUNDS, TTL, Some(0));
        let (wait, end) = match patience {
            Patience::Never => (Wait::Never, NOW),
            Patience::Bounded => (Wait::Until(NOW + ticks(2)), NOW + ticks(2)),
            Patience::Forever => (Wait::Forever, Moment::NEVER),
        };
        Self {
            machine: Acquisition::new(terms.waiting(wait)),
            stage: Stage::New,
            sent: None,
            reply: None,
            late: BTreeSet::new(),
            wakes: Vec::new(),
            until: Moment::NEVER,
            end,
            floor: 0,
            released: None,
            is_closed: false,
            snapshot: None,
        }
    }

    /// A wake-up is under way. If pushes are not late, only a waiter gets it.
    pub(super) fn push(&mut self, wake: Wake, model: &Machines) {
        let late = model.may(May::PushLate) && model.is_push(&wake);
        if (late || self.waits()) && !self.wakes.contains(&wake) {
            self.wakes.push(wake);
        }
    }

    /// Wake-ups do not matter any more, except late pushes.
    pub(super) fn stop_listening(&mut self, model: &Machines) {
        let late = model.may(May::PushLate);
        self.wakes.retain(|wake| late && model.is_push(wake));
    }

    /// A request that was sent may arrive later, because its answer is not awaited any more.
    pub(super) fn stop_awaiting(&mut self) {
        self.late.extend(self.sent.take().map(|(copy, _)| copy));
        (self.reply, self.snapshot) = (None, None);
    }

    pub(super) const fn token(&self) -> u64 {
        match self.stage {
            Stage::Holding(grant) => grant.token.get(),
            Stage::GivingBack(token) | Stage::Background(token) => token,
            _ => 0,
        }
    }

    /// Whether the caller relies on its lease.
    pub(super) fn relies(&self) -> bool {
        matches!(self.stage, Stage::Holding(grant) if grant.lease.deadline() > NOW)
    }

    pub(super) fn waits(&self) -> bool {
        self.stage == Stage::Waiting
    }
}
