use super::{
    failure::Failure,
    record,
    service::{Service, TRIES},
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest},
};
use lock_core::{Error, ErrorKind, InitialToken, Operation};

/// What is added to a revision to get a token, and the revision by which it last changed.
///
/// It only rises. A place in line is made on the condition that the floor is still the one that is
/// written into the place, so that the order of places is the order of tokens. It is never read
/// again for an existing place: a client that slept while it rose would outrank the present holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    pub(super) changed: i64,
}

impl Floor {
    /// Reads it. `None` if it is no number, and so no floor of ours.
    pub(super) fn read(entry: &KeyValue) -> Option<Self> {
        let text = std::str::from_utf8(&entry.value).ok()?;
        Some(Self {
            value: text.parse().ok()?,
            changed: entry.mod_revision,
        })
    }

    /// What stands in its key.
    pub(super) fn text(self) -> Vec<u8> {
        self.value.to_string().into_bytes()
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
            let (floor, revision) = self.read_floor(Operation::Connect).await?;
            let start = match self.initial {
                InitialToken::Clock => {
                    let clock = InitialToken::clock_token(self.clock().unix_time());
                    clock.saturating_sub(record::token(0, revision).map_or(0, u64::from))
                }
                InitialToken::At(token) if floor.changed == 0 => token.get() - 1,
                InitialToken::At(_) => 0,
            };
            if floor.changed > 0 && floor.value >= start {
                self.know_floor(floor);
                return Ok(());
            }
            // If it is deleted meanwhile it is made anew, and if it is raised it is read again.
            let value = std::cmp::max(floor.value, start);
            let lifted = self.put_floor(Floor { value, ..floor }).await;
            if lifted.map_err(connecting)? {
                return Ok(());
            }
        }
        Err(connecting_to_crowd())
    }

    /// The floor, and the revision of the cluster when it was read.
    pub(super) async fn read_floor(&self, operation: Operation) -> Result<(Floor, i64), Error> {
        let read = self.read([RangeRequest::key(&self.keys.floor())]).await;
        let read = read.map_err(|failure| failure.error(operation))?;
        let revision = read.revision();
        let floor = match read.ranges().flat_map(|range| range.kvs).next() {
            Some(entry) => Floor::read(&entry).ok_or_else(broken)?,
            None => Floor::default(),
        };
        Ok((floor, revision))
    }

    /// Changes the floor; false if it has changed since it was read.
    async fn put_floor(&self, floor: Floor) -> Result<bool, Failure> {
        let key = self.keys.floor();
        let txn = TxnRequest {
            compare: vec![Compare::changed(&key, floor.changed)],
            success: vec![Op::put(&key, floor.text(), 0)],
            failure: Vec::new(),
        };
        let answer = self.txn(&txn).await?;
        if answer.succeeded {
            let changed = answer.revision();
            self.know_floor(Floor { changed, ..floor });
        }
        Ok(answer.succeeded)
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
    use lock_core::FencingToken;

    #[test]
    fn a_raised_floor_is_enough_and_no_more() {
        let least = FencingToken::new(1000).unwrap();
        let floor = Floor::for_token(least.get(), 7);
        assert_eq!(record::token(floor, 7), Some(least));
        assert_eq!(Floor::for_token(1, 7), 0);
    }

    #[test]
    fn only_a_number_is_a_floor() {
        let entry = |value: &str| KeyValue {
            value: value.into(),
            mod_revision: 3,
            ..KeyValue::default()
        };
        let floor = Floor {
            value: 12,
            changed: 3,
        };
        assert_eq!(Floor::read(&entry("12")), Some(floor));
        assert_eq!(floor.text(), b"12");
        for other in ["a dozen", "12 2", ""] {
            assert_eq!(Floor::read(&entry(other)), None, "{other:?}");
        }
    }
}
