//! What this process holds, waits for and has left behind, as a state machine without time or
//! tasks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{ENDED_TTL, line::Identity, note::Note, session::Session, watch::Watch};
use lock_core::{
    AttemptId, AttemptRef, FencingToken, Holder, Moment, ResourceName, Sequencer,
    support::{End, Ended},
};

type Key = (ResourceName, Holder);

/// See the module.
#[derive(Debug)]
pub(super) struct Table {
    holds: HashMap<Key, Hold>,
    by_path: HashMap<Arc<str>, Key>,
    /// The leases by the moment at which they end, with a number that makes them unique.
    by_deadline: BTreeMap<(Moment, u64), Key>,
    /// Nodes that an acquire has made or is about to make. An attempt that was sent again before
    /// the first request was answered has several.
    places: HashMap<AttemptId, Vec<Place>>,
    /// How many of them belong to one acquisition.
    places_of: HashMap<Key, u32>,
    leftovers: BTreeMap<u64, Leftover>,
    /// The last one that the reaper has taken.
    taken: u64,
    ended: Ended,
    /// Cancelled attempts that this process has never had. One that comes late is refused. If it is
    /// cancelled again, it is looked for again.
    elsewhere: Ended,
    last_number: u64,
}

/// A lease of this process.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) session: Arc<Session>,
    pub(super) path: Arc<str>,
    pub(super) note: Note,
    pub(super) token: FencingToken,
    pub(super) deadline: Moment,
    /// The latest deadline that was asked for. Before anybody is told of it, a note is written into
    /// the node that reaches as far.
    promised: Moment,
    /// The attempts that were told of it.
    attempts: HashSet<AttemptId>,
    /// Whether a release has sent its deletion: if the node is gone then, it is because of us.
    pub(super) releasing: bool,
    number: u64,
    /// The transaction that last wrote the lock directory before the lease was granted.
    pub(super) directory: i64,
    /// A watch of the node, left over from waiting. It is kept while taking it back would cost the
    /// servers a request.
    _watch: Option<Arc<Watch>>,
}

impl Hold {
    pub(super) fn new(
        session: Arc<Session>,
        path: Arc<str>,
        note: Note,
        token: FencingToken,
        deadline: Moment,
        directory: i64,
        watch: Option<Arc<Watch>>,
    ) -> Self {
        Self {
            session,
            path,
            note,
            token,
            deadline,
            promised: deadline,
            attempts: HashSet::new(),
            releasing: false,
            number: 0,
            directory,
            _watch: watch,
        }
    }

    /// Somebody is about to ask for this deadline. Returns how far a note has to reach now.
    pub(super) fn promise(&mut self, deadline: Moment) -> Moment {
        self.promised = std::cmp::max(self.promised, deadline);
        self.promised
    }
}

#[derive(Debug)]
struct Place {
    key: Key,
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

/// What is known about an attempt before anything is sent for it.
#[derive(Debug)]
pub(super) enum Begun {
    /// It, or its acquisition, has ended.
    Ended,
    /// Its acquisition is granted already.
    Held(Box<Hold>),
    New,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            holds: HashMap::new(),
            by_path: HashMap::new(),
            by_deadline: BTreeMap::new(),
            places: HashMap::new(),
            places_of: HashMap::new(),
            leftovers: BTreeMap::new(),
            taken: 0,
            ended: Ended::new(ENDED_TTL),
            elsewhere: Ended::new(ENDED_TTL),
            last_number: 0,
        }
    }

    pub(super) fn begin(&mut self, attempt: &AttemptRef, now: Moment) -> Begun {
        self.expire(now);
        if self.has_ended(attempt) {
            return Begun::Ended;
        }
        self.holds
            .get(&key(attempt))
            .map_or(Begun::New, |hold| Begun::Held(Box::new(hold.clone())))
    }

    /// Remembers what is about to be created. False if the attempt has ended; then nothing may be
    /// created.
    #[must_use]
    pub(super) fn enter(
        &mut self,
        attempt: &AttemptRef,
        session: Arc<Session>,
        identity: Identity,
    ) -> bool {
        if self.has_ended(attempt) {
            return false;
        }
        let key = key(attempt);
        *self.places_of.entry(key.clone()).or_default() += 1;
        self.places.entry(attempt.id).or_default().push(Place {
            key,
            session,
            identity,
        });
        true
    }

    /// Whether a place is still wanted: not if its attempt was cancelled.
    pub(super) fn is_wanted(&self, attempt: AttemptId, identity: &Identity) -> bool {
        let places = self.places.get(&attempt);
        places.is_some_and(|places| places.iter().any(|place| place.identity == *identity))
    }

    /// Forgets a place whose node is gone.
    pub(super) fn leave(&mut self, attempt: AttemptId, identity: &Identity) {
        self.take_place(attempt, identity);
    }

    /// Leaves behind a place that nobody is interested in any more, and whose node may be there.
    ///
    /// If it was cancelled before, what was to be deleted is listed once more, because it may have
    /// been created since.
    pub(super) fn abandon(
        &mut self,
        attempt: &AttemptRef,
        session: Arc<Session>,
        identity: Identity,
    ) {
        self.take_place(attempt.id, &identity);
        let resource = attempt.resource.clone();
        self.leave_behind(
            resource,
            session,
            Node::Identity(identity),
            Some(attempt.id),
        );
    }

    /// Turns a place into a lease. False if the attempt was cancelled meanwhile.
    ///
    /// The second value is whether another attempt of the same acquisition waits.
    pub(super) fn hold(
        &mut self,
        attempt: &AttemptRef,
        identity: &Identity,
        mut hold: Hold,
    ) -> (bool, bool) {
        if self.has_ended(attempt) {
            return (false, false);
        }
        self.take_place(attempt.id, identity);
        let key = key(attempt);
        hold.number = self.number();
        hold.attempts.insert(attempt.id);
        self.by_deadline
            .insert((hold.deadline, hold.number), key.clone());
        self.by_path.insert(Arc::clone(&hold.path), key.clone());
        let others = self.places_of.contains_key(&key);
        self.holds.insert(key, hold);
        (true, others)
    }

    /// Another attempt is told of a lease. False if it has ended meanwhile.
    pub(super) fn join(&mut self, attempt: &AttemptRef, token: FencingToken) -> bool {
        if self.has_ended(attempt) {
            return false;
        }
        match self.holds.get_mut(&key(attempt)) {
            Some(hold) if hold.token == token => {
                hold.attempts.insert(attempt.id);
                true
            }
            _ => false,
        }
    }

    /// A lease, if it lives.
    pub(super) fn find(&mut self, lease: &Sequencer, now: Moment) -> Option<&mut Hold> {
        self.expire(now);
        let key = (lease.resource().clone(), lease.holder());
        let hold = self.holds.get_mut(&key)?;
        (hold.token == lease.token()).then_some(hold)
    }

    /// A lease of this process by its node.
    pub(super) fn at(&mut self, path: &str, now: Moment) -> Option<&Hold> {
        self.expire(now);
        self.holds.get(self.by_path.get(path)?)
    }

    /// How the lease ended, as far as it is remembered.
    pub(super) fn end_of(&self, lease: &Sequencer) -> Option<End> {
        self.ended.how(lease.resource(), lease.holder())
    }

    /// Takes note of a renewal, and returns the deadline. `None` if the lease has ended meanwhile.
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

    /// The node of a lease is gone.
    pub(super) fn end(&mut self, lease: &Sequencer, end: End, now: Moment) {
        let key = (lease.resource().clone(), lease.holder());
        if self
            .holds
            .get(&key)
            .is_some_and(|hold| hold.token == lease.token())
        {
            self.take_hold(&key);
            self.ended.acquisition(&key.0, key.1, end, now);
        }
    }

    /// The node of a replayed acquisition is gone.
    pub(super) fn lost(&mut self, attempt: &AttemptRef, token: FencingToken, now: Moment) {
        let key = key(attempt);
        if self.holds.get(&key).is_some_and(|hold| hold.token == token) {
            self.take_hold(&key);
            self.ended.acquisition(&key.0, key.1, End::Lost, now);
        }
    }

    /// Ends an attempt, and returns what has to be deleted for it. `None` if this process knows
    /// nothing of it.
    pub(super) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) -> Option<Vec<Leftover>> {
        self.expire(now);
        let is_known = self.is_known(attempt);
        let ended = if is_known {
            &mut self.ended
        } else {
            &mut self.elsewhere
        };
        ended.attempt(attempt, End::Lost, now);
        let key = key(attempt);
        if let Some(hold) = self.holds.get_mut(&key)
            && hold.attempts.remove(&attempt.id)
            && hold.attempts.is_empty()
        {
            self.drop_hold(&key, Some(attempt.id));
        }
        // An acquire that is still under way creates nothing more, and finds its node gone.
        for place in self.places.remove(&attempt.id).unwrap_or_default() {
            self.forget(&place.key);
            let node = Node::Identity(place.identity);
            self.leave_behind(place.key.0, place.session, node, Some(attempt.id));
        }
        let of_attempt = |leftover: &&Leftover| leftover.attempt == Some(attempt.id);
        let leftovers = self.leftovers.values().filter(of_attempt);
        let leftovers: Vec<_> = leftovers.cloned().collect();
        (is_known || !leftovers.is_empty()).then_some(leftovers)
    }

    /// Whether nothing more may be created for an attempt.
    fn has_ended(&self, attempt: &AttemptRef) -> bool {
        self.ended.contains(attempt) || self.elsewhere.contains(attempt)
    }

    /// Whether an attempt holds or waits in this process, or has ended in it.
    fn is_known(&self, attempt: &AttemptRef) -> bool {
        let hold = self.holds.get(&key(attempt));
        self.ended.contains(attempt)
            || self.places.contains_key(&attempt.id)
            || hold.is_some_and(|hold| hold.attempts.contains(&attempt.id))
    }

    /// What has to be deleted before anybody looks at a resource.
    pub(super) fn leftovers_of(&mut self, resource: &ResourceName, now: Moment) -> Vec<Leftover> {
        self.expire(now);
        let of_resource = |leftover: &&Leftover| leftover.resource == *resource;
        let leftovers = self.leftovers.values().filter(of_resource);
        leftovers.cloned().collect()
    }

    /// What has to be deleted and was not taken before, and the moment to ask again.
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
            let key = entry.get().clone();
            self.ended.acquisition(&key.0, key.1, End::Lost, now);
            self.drop_hold(&key, None);
        }
    }

    fn drop_hold(&mut self, key: &Key, attempt: Option<AttemptId>) {
        if let Some(hold) = self.take_hold(key) {
            let node = Node::Path(hold.path);
            self.leave_behind(key.0.clone(), hold.session, node, attempt);
        }
    }

    fn take_hold(&mut self, key: &Key) -> Option<Hold> {
        let hold = self.holds.remove(key)?;
        self.by_deadline.remove(&(hold.deadline, hold.number));
        self.by_path.remove(&hold.path);
        Some(hold)
    }

    fn take_place(&mut self, attempt: AttemptId, identity: &Identity) {
        let Some(places) = self.places.get_mut(&attempt) else {
            return;
        };
        let Some(at) = places.iter().position(|place| place.identity == *identity) else {
            return;
        };
        let place = places.swap_remove(at);
        if places.is_empty() {
            self.places.remove(&attempt);
        }
        self.forget(&place.key);
    }

    /// Counts one place less of an acquisition.
    fn forget(&mut self, key: &Key) {
        if let Some(count) = self.places_of.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.places_of.remove(key);
            }
        }
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
