use super::{Attempt, Client, Flaw, Queue, watch::Note};

/// One attempt of one acquisition, made by one client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) acquisition: usize,
    pub(crate) client: Client,
    /// Whether it may have attempts in other processes; then it confirms before it returns.
    pub(crate) detached: bool,
    /// It begins after this attempt of the same acquisition was given up.
    pub(crate) after: Option<Attempt>,
}

impl Queue {
    /// Two clients with an acquisition each, and a broken connection.
    pub(crate) fn duel() -> Self {
        let shows = &[Note::LateRefused, Note::PollFoundGrant];
        Self {
            alike: 0..2,
            shows,
            late_pushes: true,
            cuts: 1,
            expiries: 2,
            ..Self::new(&[(0, 0), (1, 1)])
        }
    }

    /// Two clients; the first has two acquisitions in the line, and may be paused at any time.
    pub(crate) fn pause() -> Self {
        let shows = &[Note::SetAside, Note::BackInLine];
        Self {
            alike: 0..2,
            shows,
            expiries: 2,
            ..Self::new(&[(0, 0), (1, 0), (2, 1)])
        }
    }

    /// Two clients; the first has two acquisitions in the line, and a connection breaks.
    pub(crate) fn cut_off() -> Self {
        Self {
            alike: 0..2,
            shows: &[Note::LateRefused],
            cuts: 1,
            ..Self::new(&[(0, 0), (1, 0), (2, 1)])
        }
    }

    /// Three clients with an acquisition each.
    pub(crate) fn line() -> Self {
        Self {
            alike: 0..3,
            expiries: 1,
            ..Self::new(&[(0, 0), (1, 1), (2, 2)])
        }
    }

    /// One acquisition, attempted by two clients at the same time while a third has the lease.
    pub(crate) fn two_gateways() -> Self {
        let mut queue = Self::new(&[(0, 0), (0, 1), (1, 2)]);
        queue.expiries = 1;
        queue.attempts[0].detached = true;
        queue.attempts[1].detached = true;
        queue.holder = Some(2);
        queue.alike = 0..2;
        queue.late_pushes = true;
        queue
    }

    /// One acquisition, attempted by a client and, after that was given up, attempted again; and
    /// two rivals.
    pub(crate) fn second_attempt() -> Self {
        let mut queue = Self::new(&[(0, 0), (0, 0), (1, 1), (2, 1)]);
        queue.attempts[1].after = Some(0);
        queue.alike = 2..4;
        queue
    }

    /// The acquisition that each attempt belongs to, and the client that makes it.
    fn new(attempts: &[(usize, Client)]) -> Self {
        let plan = |&(acquisition, client): &(usize, Client)| Plan {
            acquisition,
            client,
            detached: false,
            after: None,
        };
        Self {
            attempts: attempts.iter().map(plan).collect(),
            alike: 0..0,
            holder: None,
            shows: &[],
            cuts: 0,
            expiries: 0,
            kills: false,
            late_pushes: false,
            flaw: None,
        }
    }

    pub(crate) fn acquisition(&self, attempt: Attempt) -> usize {
        self.attempts[attempt].acquisition
    }

    /// Whether its acquisition is attempted more than once.
    pub(crate) fn has_siblings(&self, attempt: Attempt) -> bool {
        let acquisition = self.acquisition(attempt);
        let siblings = self
            .attempts
            .iter()
            .filter(|plan| plan.acquisition == acquisition);
        siblings.count() > 1
    }

    pub(crate) fn client(&self, attempt: Attempt) -> Client {
        self.attempts[attempt].client
    }

    pub(crate) fn clients(&self) -> usize {
        1 + self
            .attempts
            .iter()
            .map(|plan| plan.client)
            .max()
            .unwrap_or(0)
    }

    /// Whether the attempt returns only when its lease is confirmed.
    pub(crate) fn confirms_first(&self, attempt: Attempt) -> bool {
        self.attempts[attempt].detached && !self.is(Flaw::DetachedReturnsEarly)
    }
}
