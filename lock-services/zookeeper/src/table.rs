//! The leases, entries and leftovers of this process, as a state machine without time or tasks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{ENDED_TTL, note::Note, queue::Identity, session::Session, watch::Watch};
use lock_core::{
    FencingToken, Holder, ResourceName, Sequencer,
    backend::{
        AttemptId, AttemptRef, Moment,
        support::{End, Tombstones},
    },
};

type Key = (ResourceName, Holder);

/// The leases, entries and leftovers.
#[derive(Debug)]
pub(super) struct Table {
    /// No two leases of one resource live at the same time.
    holds: HashMap<ResourceName, Hold>,
    /// The leases by the moment at which they end, with a number that makes them unique.
    by_deadline: BTreeMap<(Moment, u64), ResourceName>,
    /// Nodes that acquires have made or are about to make. An attempt that was sent again before
    /// the first request was answered has several.
    entries: HashMap<Key, Vec<Entry>>,
    leftovers: BTreeMap<u64, Leftover>,
    /// The number of the last leftover that the reaper has taken.
    taken: u64,
    /// The ended attempts and acquisitions. If an attempt was cancelled that this process has never
    /// had, its late requests are refused, and a repeated cancel looks for it again.
    tombstones: Tombstones,
    last_number: u64,
}

/// A lease of this process.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) holder: Holder,
    pub(super) session: Arc<Session>,
    pub(super) path: Arc<str>,
    pub(super) note: Note,
    pub(super) token: FencingToken,
    pub(super) deadline: Moment,
    /// The latest deadline that was asked for. Before it is promised, a note with a long enough ttl
    /// is written into the node.
    promised: Moment,
    /// The attempts that know of the lease.
    attempts: HashSet<AttemptId>,
    /// Whether a release that has to be remembered has sent its deletion. If the node is gone after
    /// that, this client has deleted it.
    pub(super) has_tombstone: bool,
    number: u64,
    /// The transaction that last wrote the lock directory before the lease was granted.
    pub(super) directory: i64,
    /// A watch of the node from the time of waiting. It is kept because removing it would cost the
    /// servers a request.
    _watch: Option<Arc<Watch>>,
}

impl Hold {
    pub(super) fn new(
        holder: Holder,
        session: Arc<Session>,
        path: Arc<str>,
        note: Note,
        token: FencingToken,
        deadline: Moment,
        directory: i64,
    ) -> Self {
        Self {
            holder,
            session,
            path,
            note,
            token,
            deadline,
            promised: deadline,
            attempts: HashSet::new(),
            has_tombstone: false,
            number: 0,
            directory,
            _watch: None,
        }
    }

    pub(super) fn watched(mut self, watch: Option<Arc<Watch>>) -> Self {
        self._watch = watch;
        self
    }

    fn is(&self, holder: Holder, token: FencingToken) -> bool {
        self.holder == holder && self.token == token
    }

    /// Notes that a caller is about to ask for this deadline. Returns the moment to which the note
    /// has to reach now.
    pub(super) fn promise(&mut self, deadline: Moment) -> Moment {
        self.promised = std::cmp::max(self.promised, deadline);
        self.promised
    }
}

#[derive(Debug)]
struct Entry {
    attempt: AttemptId,
    session: Arc<Session>,
    identity: Identity,
}

/// A node that has to be deleted.
#[derive(Clone, Debug)]
pub(super) struct Leftover {
    pub(super) number: u64,
    pub(super) resource: ResourceName,
    pub(super) session: Arc<Session>,
    pub(super) node: Node,
    attempt: Option<AttemptId>,
}

/// How a node is found.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Path(Arc<str>),
    /// The creation may have had no answer.
    Identity(Identity),
}

/// The state of an attempt before anything is sent for it.
#[derive(Debug)]
pub(super) enum Begun {
    /// The attempt, or its acquisition, has ended.
    Ended,
    /// The acquisition of the attempt is granted already.
    Held(Box<Hold>),
    New,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            holds: HashMap::new(),
            by_deadline: BTreeMap::new(),
            entries: HashMap::new(),
            leftovers: BTreeMap::new(),
            taken: 0,
            tombstones: Tombstones::new(ENDED_TTL),
            last_number: 0,
        }
    }

    pub(super) fn begin(&mut self, attempt: &AttemptRef, now: Moment) -> Begun {
        self.expire(now);
        if self.tombstones.forbids(attempt) {
            return Begun::Ended;
        }
        let hold = self.hold_of(&attempt.resource, attempt.holder);
        hold.map_or(Begun::New, |hold| Begun::Held(Box::new(hold.clone())))
    }

    /// Remembers a node that is about to be created. Returns false if the attempt has ended. Then
    /// the node must not be created.
    #[must_use]
    pub(super) fn enter(
        &mut self,
        attempt: &AttemptRef,
        session: Arc<Session>,
        identity: Identity,
    ) -> bool {
        if self.tombstones.forbids(attempt) {
            return false;
        }
        self.entries.entry(key(attempt)).or_default().push(Entry {
            attempt: attempt.id,
            session,
            identity,
        });
        true
    }

    /// Whether an entry is still wanted. It is not if its attempt was cancelled.
    pub(super) fn is_wanted(&self, attempt: &AttemptRef, identity: &Identity) -> bool {
        let entries = self.entries.get(&key(attempt));
        entries.is_some_and(|entries| entries.iter().any(|entry| entry.identity == *identity))
    }

    /// Forgets an entry whose node is gone.
    pub(super) fn leave(&mut self, attempt: &AttemptRef, identity: &Identity) {
        self.take_entries(attempt, |entry| entry.identity == *identity);
    }

    /// Makes a leftover of an entry whose caller has gone. The node of the entry may exist.
    ///
    /// If the attempt was cancelled before, the nodes to delete are listed once more, because they
    /// may have been created since.
    pub(super) fn abandon(
        &mut self,
        attempt: &AttemptRef,
        session: Arc<Session>,
        identity: Identity,
    ) {
        self.leave(attempt, &identity);
        let resource = attempt.resource.clone();
        self.leave_behind(
            resource,
            session,
            Node::Identity(identity),
            Some(attempt.id),
        );
    }

    /// Turns an entry into a lease. The first value is false if the attempt was cancelled before.
    ///
    /// The second value is whether another attempt of the same acquisition waits.
    pub(super) fn hold(
        &mut self,
        attempt: &AttemptRef,
        identity: &Identity,
        mut hold: Hold,
        now: Moment,
    ) -> (bool, bool) {
        if self.tombstones.forbids(attempt) {
            return (false, false);
        }
        self.leave(attempt, identity);
        let resource = &attempt.resource;
        // Another client has deleted the node of another holder's lease.
        if let Some(lost) = self.take_hold(resource)
            && lost.holder != attempt.holder
        {
            self.tombstones
                .acquisition(resource, lost.holder, End::Over, now);
        }
        hold.number = self.number();
        hold.attempts.insert(attempt.id);
        self.by_deadline
            .insert((hold.deadline, hold.number), resource.clone());
        self.holds.insert(resource.clone(), hold);
        (true, self.entries.contains_key(&key(attempt)))
    }

    /// Notes that another attempt knows of a lease. Returns false if the lease has ended.
    pub(super) fn join(&mut self, attempt: &AttemptRef, token: FencingToken) -> bool {
        if self.tombstones.forbids(attempt) {
            return false;
        }
        let hold = self.holds.get_mut(&attempt.resource);
        let hold = hold.filter(|hold| hold.is(attempt.holder, token));
        hold.is_some_and(|hold| {
            hold.attempts.insert(attempt.id);
            true
        })
    }

    /// The lease, if it lives.
    pub(super) fn find(&mut self, lease: &Sequencer, now: Moment) -> Option<&mut Hold> {
        self.expire(now);
        let hold = self.holds.get_mut(lease.resource())?;
        hold.is(lease.holder(), lease.token()).then_some(hold)
    }

    /// The lease of this process that has this node.
    pub(super) fn at(&mut self, resource: &ResourceName, path: &str, now: Moment) -> Option<&Hold> {
        self.expire(now);
        self.holds.get(resource).filter(|hold| *hold.path == *path)
    }

    /// How the lease ended, as far as it is remembered.
    pub(super) fn end_of(&self, lease: &Sequencer) -> Option<End> {
        self.tombstones.how(lease.resource(), lease.holder())
    }

    /// Takes note of a renewal, and returns the deadline. `None` if the lease has ended before.
    pub(super) fn renewed(
        &mut self,
        lease: &Sequencer,
        deadline: Moment,
        now: Moment,
    ) -> Option<Moment> {
        let hold = self.find(lease, now)?;
        let (old, number) = (hold.deadline, hold.number);
        hold.deadline = std::cmp::max(old, deadline);
        let new = hold.deadline;
        if let Some(key) = self.by_deadline.remove(&(old, number)) {
            self.by_deadline.insert((new, number), key);
        }
        Some(new)
    }

    /// Ends a lease whose node is gone.
    pub(super) fn end(
        &mut self,
        resource: &ResourceName,
        holder: Holder,
        token: FencingToken,
        end: End,
        now: Moment,
    ) {
        let hold = self.holds.get(resource);
        if hold.is_some_and(|hold| hold.is(holder, token)) {
            self.take_hold(resource);
            self.tombstones.acquisition(resource, holder, end, now);
        }
    }

    /// Ends an attempt, and returns the nodes that have to be deleted for it. `None` if this
    /// process does not know the attempt.
    pub(super) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) -> Option<Vec<Leftover>> {
        self.expire(now);
        let is_known = self.is_known(attempt);
        let end = if is_known {
            End::Over
        } else {
            End::CancelledUnseen
        };
        self.tombstones.attempt(attempt, end, now);
        let resource = &attempt.resource;
        if let Some(hold) = self.holds.get_mut(resource)
            && hold.holder == attempt.holder
            && hold.attempts.remove(&attempt.id)
            && hold.attempts.is_empty()
        {
            self.drop_hold(resource, Some(attempt.id));
        }
        // An acquire that is still under way creates no further node, and finds that its node is
        // gone.
        for entry in self.take_entries(attempt, |entry| entry.attempt == attempt.id) {
            let node = Node::Identity(entry.identity);
            self.leave_behind(resource.clone(), entry.session, node, Some(attempt.id));
        }
        let of_attempt = |leftover: &&Leftover| leftover.attempt == Some(attempt.id);
        let leftovers = self.leftovers.values().filter(of_attempt);
        let leftovers: Vec<_> = leftovers.cloned().collect();
        (is_known || !leftovers.is_empty()).then_some(leftovers)
    }

    /// Whether an attempt holds or waits in this process, or has ended in it.
    fn is_known(&self, attempt: &AttemptRef) -> bool {
        let hold = self.hold_of(&attempt.resource, attempt.holder);
        let entries = self.entries.get(&key(attempt));
        self.tombstones.knows(attempt)
            || entries.is_some_and(|entries| entries.iter().any(|it| it.attempt == attempt.id))
            || hold.is_some_and(|hold| hold.attempts.contains(&attempt.id))
    }

    fn hold_of(&self, resource: &ResourceName, holder: Holder) -> Option<&Hold> {
        let hold = self.holds.get(resource);
        hold.filter(|hold| hold.holder == holder)
    }

    /// The nodes to delete before a look at a resource.
    pub(super) fn leftovers_of(&mut self, resource: &ResourceName, now: Moment) -> Vec<Leftover> {
        self.expire(now);
        let of_resource = |leftover: &&Leftover| leftover.resource == *resource;
        let leftovers = self.leftovers.values().filter(of_resource);
        leftovers.cloned().collect()
    }

    /// The nodes to delete that were not taken before, and the moment at which to ask again.
    pub(super) fn take_leftovers(&mut self, now: Moment) -> (Vec<Leftover>, Moment) {
        self.expire(now);
        let fresh = self.leftovers.range(self.taken + 1..);
        let fresh: Vec<_> = fresh.map(|(_, leftover)| leftover.clone()).collect();
        self.taken = self.last_number;
        let next = self.by_deadline.keys().next();
        (fresh, next.map_or(Moment::NEVER, |(deadline, _)| *deadline))
    }

    /// Forgets a leftover that is gone.
    pub(super) fn removed(&mut self, leftover: &Leftover) {
        self.leftovers.remove(&leftover.number);
    }

    fn expire(&mut self, now: Moment) {
        while let Some(entry) = self.by_deadline.first_entry()
            && entry.key().0 <= now
        {
            let resource = entry.get().clone();
            if let Some(holder) = self.drop_hold(&resource, None) {
                self.tombstones
                    .acquisition(&resource, holder, End::Over, now);
            }
        }
    }

    /// Makes a leftover of the node of a lease that is over. Returns the holder.
    fn drop_hold(&mut self, resource: &ResourceName, attempt: Option<AttemptId>) -> Option<Holder> {
        let hold = self.take_hold(resource)?;
        let node = Node::Path(hold.path);
        self.leave_behind(resource.clone(), hold.session, node, attempt);
        Some(hold.holder)
    }

    fn take_hold(&mut self, resource: &ResourceName) -> Option<Hold> {
        let hold = self.holds.remove(resource)?;
        self.by_deadline.remove(&(hold.deadline, hold.number));
        Some(hold)
    }

    fn take_entries(&mut self, attempt: &AttemptRef, which: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let key = key(attempt);
        let Some(entries) = self.entries.get_mut(&key) else {
            return Vec::new();
        };
        let taken = entries.extract_if(.., |entry| which(entry)).collect();
        if entries.is_empty() {
            self.entries.remove(&key);
        }
        taken
    }

    fn leave_behind(
        &mut self,
        resource: ResourceName,
        session: Arc<Session>,
        node: Node,
        attempt: Option<AttemptId>,
    ) {
        let number = self.number();
        let leftover = Leftover {
            number,
            resource,
            session,
            node,
            attempt,
        };
        self.leftovers.insert(number, leftover);
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

fn key(attempt: &AttemptRef) -> Key {
    (attempt.resource.clone(), attempt.holder)
}
