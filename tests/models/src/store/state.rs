use super::{ACQUISITIONS, Token};
use crate::set::Set;

/// The whole state at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The primary of the lock service before a failover.
    pub(crate) old: Primary,
    /// The data of its replica.
    pub(crate) replica: Primary,
    /// The primary after the failover.
    pub(crate) new: Option<Primary>,
    pub(crate) mark: Mark,
    /// The updates that the value contains.
    pub(crate) value: Set,
    pub(crate) acquisitions: [Acquisition; ACQUISITIONS],
    /// How many grants there were.
    pub(crate) grants: u8,
    /// The updates that were acknowledged.
    pub(crate) acknowledged: Set,
    pub(crate) faults: Set,
}

/// One server of the lock service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Primary {
    pub(crate) counter: Token,
    /// The acquisition that was granted last. Its lease may have ended.
    pub(crate) holder: Option<usize>,
}

/// Which server of the lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Old,
    New,
}

/// The memory of the store for the resource, besides the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) token: Token,
    pub(crate) holder: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Acquisition {
    pub(crate) phase: Phase,
    pub(crate) token: Token,
    /// The place of its grant among all grants.
    pub(crate) granted: u8,
    /// The mark that refused the acquisition.
    pub(crate) refused_by: Token,
    /// How many times the counter was raised for the acquisition.
    pub(crate) floors: u8,
    /// The value that the acquisition has read.
    pub(crate) base: Option<Set>,
    /// How many writes the acquisition has made.
    pub(crate) writes: u8,
    /// A write that the acquisition no longer waits for.
    pub(crate) late: Option<Write>,
    /// The greatest token that the acquisition has claimed.
    pub(crate) claimed: Option<Token>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// The acquisition has a token, but acquire has not returned.
    Granted,
    Acquired,
    HasRead,
    Done,
    Refused,
}

/// The content of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) token: Token,
    pub(crate) base: Set,
    /// The first write of an acquisition is 1.
    pub(crate) number: u8,
}

/// Something that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    LateWrite,
    OutOfClaimOrder,
}

impl State {
    /// The primary that clients should use.
    pub(crate) fn current(&self) -> (Side, Primary) {
        self.new
            .map_or((Side::Old, self.old), |new| (Side::New, new))
    }

    pub(crate) fn primary(&mut self, side: Side) -> &mut Primary {
        match side {
            Side::Old => &mut self.old,
            Side::New => self.new.get_or_insert(self.replica),
        }
    }

    pub(crate) fn blame(&mut self, fault: Fault, wrong: bool) {
        if wrong {
            self.faults.insert(fault as usize);
        }
    }

    pub(crate) fn has_seen(&self, fault: Fault) -> bool {
        self.faults.contains(fault as usize)
    }
}
