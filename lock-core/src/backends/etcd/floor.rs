use super::{
    failure::Failure,
    record,
    service::{Service, TRIES},
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest},
};
use crate::{Error, ErrorKind, InitialToken, Operation};

/// What is added to a revision to get a token, and the revision by which it last changed.
///
/// It only rises. A place in line is made on the condition that the floor is still the one that is
/// written into the place, so that the order of places is the order of tokens. It is never read
/// again for an existing place: a client that slept while it rose would outrank the present holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    /// The service has been taken out of service: nobody takes a place.
    pub(super) retired: bool,
    /// The revision that retired the service, if the floor was written again since; otherwise 0.
    pub(super) retired_by: i64,
    pub(super) changed: i64,
}

/// What the text of a floor begins with when the service is retired.
const RETIRED: &str = "retired ";

impl Floor {
    /// Reads it. `None` if it is no number, and so no floor of ours.
    pub(super) fn read(entry: &KeyValue) -> Option<Self> {
        let text = std::str::from_utf8(&entry.value).ok()?;
        let retired = text.strip_prefix(RETIRED);
        let (value, by) = match retired.and_then(|rest| rest.split_once(' ')) {
            Some((value, by)) => (value, by.parse().ok()?),
            None => (retired.unwrap_or(text), 0),
        };
        Some(Self {
            value: value.parse().ok()?,
            retired: retired.is_some(),
            retired_by: by,
            changed: entry.mod_revision,
        })
    }

    /// The same out of service. It is written even if it was out of service, so that a late request
    /// to reinstate it finds another revision. This does not change what had been issued.
    pub(super) const fn out_of_service(self) -> Self {
        let retired_by = match (self.retired, self.retired_by) {
            (true, 0) => self.changed,
            (_, by) => by,
        };
        Self {
            retired: true,
            retired_by,
            ..self
        }
    }

    /// The latest revision that can have made a place, when the cluster is at `present`.
    pub(super) const fn last(self, present: i64) -> i64 {
        match (self.retired, self.retired_by) {
            (false, _) => present,
            (true, 0) => self.changed,
            (true, by) => by,
        }
    }

    /// What stands in its key.
    pub(super) fn text(self) -> Vec<u8> {
        let text = match (self.retired, self.retired_by) {
            (false, _) => self.value.to_string(),
            (true, 0) => format!("{RETIRED}{}", self.value),
            (true, by) => format!("{RETIRED}{} {by}", self.value),
        };
        text.into_bytes()
    }

    /// A floor with which a place made at `created` or later has at least that token.
    pub(super) fn for_token(token: u64, created: i64) -> u64 {
        let above = u64::try_from(created).unwrap_or(0);
        let above = above.saturating_mul(record::TOKENS_PER_REVISION);
        token.saturating_sub(above)
    }
}

impl Service {
    /// Makes sure that there is a floor, and that tokens are not below the clock. So a cluster that
    /// came back without its data, or with a backup's, goes on above everything it has issued.
    pub(super) async fn lift_floor(&self) -> Result<(), Error> {
        for _ in 0..TRIES {
            let read = self.read([RangeRequest::key(&self.keys.floor())]).await;
            let read = read.map_err(connecting)?;
            let revision = read.revision();
            let entry = read.ranges().flat_map(|range| range.kvs).next();
            let floor = match entry.as_ref() {
                None => Floor::default(),
                Some(entry) => Floor::read(entry).ok_or_else(broken)?,
            };
            let start = match self.initial {
                InitialToken::Clock => {
                    let clock = InitialToken::clock_token(self.clock().unix_time());
                    clock.saturating_sub(record::token(0, revision).map_or(0, u64::from))
                }
                InitialToken::At(token) if floor.changed == 0 => token.get() - 1,
                InitialToken::At(_) => 0,
            };
            if floor.retired || (floor.changed > 0 && floor.value >= start) {
                self.know_floor(floor);
                return Ok(());
            }
            // If it is deleted meanwhile it is made anew, and if it is raised it is read again.
            let value = std::cmp::max(floor.value, start);
            let lifted = self.put_floor(Floor { value, ..floor }).await;
            if lifted.map_err(connecting)?.is_some() {
                return Ok(());
            }
        }
        Err(connecting_to_crowd())
    }

    /// Changes the floor and returns the new one; `None` if it has changed since it was read.
    pub(super) async fn put_floor(&self, floor: Floor) -> Result<Option<Floor>, Failure> {
        let key = self.keys.floor();
        let txn = TxnRequest {
            compare: vec![Compare::changed(&key, floor.changed)],
            success: vec![Op::put(&key, floor.text(), 0)],
            failure: Vec::new(),
        };
        let answer = self.txn(&txn).await?;
        if !answer.succeeded {
            return Ok(None);
        }
        let changed = answer.revision();
        let floor = Floor { changed, ..floor };
        self.know_floor(floor);
        Ok(Some(floor))
    }

    /// The floor as it was last seen.
    pub(super) async fn known_floor(&self) -> Result<Floor, Error> {
        loop {
            if let Some(floor) = self.floor() {
                return Ok(floor);
            }
            self.lift_floor().await?;
        }
    }

    /// Takes note of the floor that came with a refusal.
    pub(super) fn note_floor(&self, entry: Option<&KeyValue>) -> Result<(), Error> {
        match entry.map(Floor::read) {
            Some(Some(floor)) => self.know_floor(floor),
            Some(None) => return Err(broken()),
            None => self.forget_floor(),
        }
        Ok(())
    }
}

fn connecting(failure: Failure) -> Error {
    failure.error(Operation::Connect)
}

fn connecting_to_crowd() -> Error {
    Error::not_applied(ErrorKind::Unavailable, Operation::Connect, super::KIND)
        .because("others have changed the floor each time we looked")
}

pub(super) fn broken() -> Error {
    Error::not_applied(ErrorKind::CounterBroken, Operation::Acquire, super::KIND)
        .because("the floor of tokens is no number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FencingToken;

    #[test]
    fn a_raised_floor_is_enough_and_no_more() {
        let least = FencingToken::new(1000).unwrap();
        let floor = Floor::for_token(least.get(), 7);
        assert_eq!(record::token(floor, 7), Some(least));
        assert_eq!(Floor::for_token(1, 7), 0);
    }

    #[test]
    fn what_is_retired_again_has_issued_no_more() {
        let served = Floor {
            value: 12,
            changed: 3,
            ..Floor::default()
        };
        assert_eq!(served.last(9), 9);
        let mut floor = served;
        for changed in [10, 20, 30] {
            floor = Floor {
                changed,
                ..floor.out_of_service()
            };
            assert_eq!(floor.last(99), 10);
        }
    }

    #[test]
    fn only_a_number_is_a_floor() {
        let entry = |value: &str| KeyValue {
            value: value.into(),
            mod_revision: 3,
            ..KeyValue::default()
        };
        for (text, retired, retired_by) in [
            ("12", false, 0),
            ("retired 12", true, 0),
            ("retired 12 2", true, 2),
        ] {
            let floor = Floor {
                value: 12,
                retired,
                retired_by,
                changed: 3,
            };
            assert_eq!(Floor::read(&entry(text)), Some(floor));
            assert_eq!(floor.text(), text.as_bytes());
        }
        for other in [
            "a dozen",
            "12 2",
            "retired",
            "retired  12",
            "retired 12 ",
            "",
        ] {
            assert_eq!(Floor::read(&entry(other)), None, "{other:?}");
        }
    }
}
