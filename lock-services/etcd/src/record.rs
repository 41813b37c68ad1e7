//! The values of our keys in etcd.

use prost::{Enumeration, Message};

use super::wire::KeyValue;
use lock_core::{FencingToken, Holder, HolderView, Metadata, backend::AttemptId};

/// The number of ended attempts that are remembered. Older ones are forgotten.
const ENDED_MAX: usize = 64;

/// The number by which the token grows with each revision. So between the tokens of any two grants
/// there is a token that no grant has, and a release by force revokes with it.
pub(super) const TOKENS_PER_REVISION: u64 = 2;

/// A queue entry, the value of `PREFIX/lock/RESOURCE/..`. In a queue, the key with the least
/// creation revision holds the resource. The value of an `etcdctl lock` is empty.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    /// [`Holder::digest`].
    #[prost(string, tag = "1")]
    pub(super) digest: String,
    /// The floor when the entry was created. The token is computed from the revision and this
    /// floor.
    #[prost(uint64, tag = "2")]
    pub(super) floor: u64,
    /// The attempts that rely on this lease.
    #[prost(string, repeated, tag = "3")]
    pub(super) attempts: Vec<String>,
    #[prost(string, optional, tag = "4")]
    pub(super) metadata: Option<String>,
    /// The least token that the acquisition accepts. If the token of this entry is less, the entry
    /// is given back for another one when its turn comes. This value only rises, and only while
    /// another entry is before this entry, because the first entry in the queue may have been
    /// granted.
    #[prost(uint64, tag = "5")]
    pub(super) least: u64,
}

/// The floor of tokens. A token is computed from a revision and this value. `changed` is the
/// revision by which the floor last changed.
///
/// The floor only rises. A queue entry is made on the condition that the floor in the entry is
/// still the present floor, so that the order of entries is the order of tokens. The floor is never
/// read again for an existing entry: a client that slept while the floor rose would get a greater
/// token than the present holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    pub(super) changed: i64,
}

impl Floor {
    /// Reads the floor. `None` if the value is no number.
    pub(super) fn read(kv: &KeyValue) -> Option<Self> {
        let text = std::str::from_utf8(&kv.value).ok()?;
        Some(Self {
            value: text.parse().ok()?,
            changed: kv.mod_revision,
        })
    }

    /// The value of the key of the floor.
    pub(super) fn text(self) -> Vec<u8> {
        self.value.to_string().into_bytes()
    }

    /// A floor with which an entry that was made at `created` or later has at least this token.
    pub(super) fn for_token(token: u64, created: i64) -> u64 {
        let above = u64::try_from(created).unwrap_or(0);
        let above = above.saturating_mul(TOKENS_PER_REVISION);
        token.saturating_sub(above)
    }
}

/// The memory of an acquisition while its requests may still arrive, the value of
/// `PREFIX/tombstone/..`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Tombstone {
    #[prost(enumeration = "State", tag = "1")]
    state: i32,
    /// The token of the lease that was released, if one was.
    #[prost(uint64, tag = "2")]
    pub(super) token: u64,
    #[prost(message, repeated, tag = "3")]
    ended: Vec<EndedAttempt>,
}

/// An attempt that gets nothing more.
#[derive(Clone, PartialEq, Message)]
struct EndedAttempt {
    #[prost(string, tag = "1")]
    id: String,
    /// The token of the hold that it gave back; 0 if it was cancelled.
    #[prost(uint64, tag = "2")]
    token: u64,
}

/// The state of an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum State {
    /// It has no queue entry and may ask for one.
    Idle = 0,
    /// It has an entry. If the entry is gone, its lease ran out.
    Queued = 1,
    /// Its lease was released.
    Released = 2,
}

impl Entry {
    pub(super) fn new(holder: Holder, attempt: AttemptId, note: Option<&Metadata>) -> Self {
        Self {
            digest: holder.digest(),
            attempts: vec![attempt.to_string()],
            metadata: note.map(|note| note.as_str().to_owned()),
            ..Self::default()
        }
    }

    /// The entry with this floor, and with the least token that its acquisition accepts.
    pub(super) fn counted(self, floor: u64, least: u64) -> Self {
        Self {
            floor,
            least,
            ..self
        }
    }

    /// Whether the attempt relies on this lease.
    pub(super) fn has(&self, attempt: AttemptId) -> bool {
        self.attempts.contains(&attempt.to_string())
    }

    pub(super) fn without(mut self, attempt: AttemptId) -> Self {
        let attempt = attempt.to_string();
        self.attempts.retain(|one| *one != attempt);
        self
    }
}

impl Tombstone {
    pub(super) fn released(token: FencingToken) -> Self {
        Self {
            state: State::Released as i32,
            token: token.get(),
            ended: Vec::new(),
        }
    }

    pub(super) fn state_is(&self, state: State) -> bool {
        self.state == state as i32
    }

    pub(super) fn in_state(mut self, state: State) -> Self {
        self.state = state as i32;
        self
    }

    /// How the attempt ended, if it ended: the token that it gave back, or 0.
    pub(super) fn end_of(&self, attempt: AttemptId) -> Option<u64> {
        let id = attempt.to_string();
        let ended = self.ended.iter().find(|ended| ended.id == id);
        ended.map(|ended| ended.token)
    }

    /// Remembers that the attempt ended. If it has given a hold back before, that end is kept.
    pub(super) fn ending(mut self, attempt: AttemptId, token: u64) -> Self {
        if self.end_of(attempt).is_none() {
            let id = attempt.to_string();
            self.ended.push(EndedAttempt { id, token });
            let surplus = self.ended.len().saturating_sub(ENDED_MAX);
            self.ended.drain(..surplus);
        }
        self
    }
}

/// A key together with our value of it.
#[derive(Clone, Debug)]
pub(super) struct Kept<T> {
    pub(super) value: T,
    pub(super) created: i64,
    pub(super) changed: i64,
    pub(super) lease: i64,
}

impl<T: Message + Default> Kept<T> {
    /// A value that is not ours counts as an empty one: all of its fields are left out.
    pub(super) fn read(kv: &KeyValue) -> Self {
        Self {
            value: T::decode(&*kv.value).unwrap_or_default(),
            created: kv.create_revision,
            changed: kv.mod_revision,
            lease: kv.lease,
        }
    }
}

impl Kept<Entry> {
    /// The token of the entry, or `None` if all tokens have been used up.
    pub(super) fn token(&self) -> Option<FencingToken> {
        token(self.value.floor, self.created)
    }

    /// Whether it has that token.
    pub(super) fn has_token(&self, token: FencingToken) -> bool {
        self.token() == Some(token)
    }

    /// The part of the entry that others may see.
    pub(super) fn view(&self, remaining: std::time::Duration) -> Option<HolderView> {
        let (token, digest) = (self.token()?, &self.value.digest);
        // `etcdctl lock` has no holder. Its lease distinguishes it from others.
        let view = if digest.is_empty() {
            HolderView::of_fingerprint(&format!("{:016x}", self.lease), token, remaining)
        } else {
            HolderView::of_digest(digest, token, remaining)
        };
        let note = self.value.metadata.as_deref().map(Metadata::escaped);
        Some(view.metadata(note))
    }
}

/// The token of an entry that was created by this revision.
pub(super) fn token(floor: u64, created: i64) -> Option<FencingToken> {
    let created = u64::try_from(created).ok()?;
    let above = created.checked_mul(TOKENS_PER_REVISION)?;
    FencingToken::new(floor.checked_add(above)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_core::{
        ResourceName,
        backend::{AttemptRef, TokioRuntime},
    };

    fn attempt() -> AttemptId {
        let resource = ResourceName::new("r").unwrap();
        AttemptRef::new(&TokioRuntime, resource, Holder::random()).id
    }

    /// Catches: a revocation without a token of its own, a token out of range, and a raised floor
    /// that is too low by one.
    #[test]
    fn a_later_creation_has_a_token_with_one_in_between() {
        let tokens = [7, 8].map(|revision| token(100, revision).unwrap().get());
        assert_eq!(tokens, [114, 116]);
        assert_eq!(token(FencingToken::MAX.get(), 1), None);
        assert_eq!(token(0, i64::MAX), None);
        assert_eq!(token(0, 0), None);
        let least = FencingToken::new(1000).unwrap();
        assert_eq!(token(Floor::for_token(least.get(), 7), 7), Some(least));
        assert_eq!(Floor::for_token(1, 7), 0);
    }

    /// Catches: a tombstone that grows with each attempt.
    #[test]
    fn ended_attempts_are_remembered_up_to_a_bound() {
        let (first, mut tombstone) = (attempt(), Tombstone::default());
        tombstone = tombstone.ending(first, 7).ending(first, 0);
        assert_eq!(tombstone.end_of(first), Some(7));
        for _ in 0..ENDED_MAX {
            tombstone = tombstone.ending(attempt(), 0);
        }
        assert_eq!(tombstone.end_of(first), None);
        assert_eq!(tombstone.ended.len(), ENDED_MAX);
    }

    /// Catches: a look that fails because of a lock of etcdctl.
    #[test]
    fn values_of_others_are_read_as_empty() {
        for value in [&b""[..], b"not ours", &[0xff; 9]] {
            let entry = KeyValue {
                create_revision: 3,
                value: value.to_vec(),
                lease: 0xbeef,
                ..KeyValue::default()
            };
            let entry = Kept::<Entry>::read(&entry);
            assert_eq!(entry.value, Entry::default());
            let view = entry.view(std::time::Duration::ZERO).unwrap();
            assert_eq!(view.fingerprint, "000000000000beef");
        }
    }
}
