use super::{
    Attempt, MOST_ATTEMPTS, Queue, Token,
    messages::{Answer, Request, Tombstone},
    scripts::execute,
    server::Server,
    watch::Watch,
};
use crate::set::Set;

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    /// The state of each attempt.
    pub(crate) phases: [Phase; MOST_ATTEMPTS],
    /// Clients with a connection.
    pub(crate) connected: Set,
    /// Requests on the connections of their clients: those of the first client, in the order in
    /// which it sent them, then those of the next.
    pub(crate) requests: Vec<Request>,
    /// Requests on connections that their clients have given up: in any order, or never.
    pub(crate) late: Vec<Request>,
    /// Answers and pushes under way: in any order, or never. Lost ones stay here.
    pub(crate) answers: Vec<Answer>,
    pub(crate) cuts_left: u8,
    pub(crate) expiries_left: u8,
    pub(crate) watch: Watch,
}

/// The state of an attempt, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Not begun.
    Idle,
    /// Only with [`Flaw::RegistersLate`](super::Flaw): sent, but a push would find nobody.
    Unregistered,
    Waiting,
    /// Has a provisional lease and does not return before it is confirmed.
    Confirming(Token),
    /// Has returned this token to its caller.
    Holding {
        token: Token,
        confirmed: bool,
    },
    Releasing(Token, Tombstone),
    Cancelling,
    /// Waits for nothing, holds nothing.
    Ended,
}

impl State {
    pub(crate) fn new(queue: &Queue) -> Self {
        let clients = Set::all_below(queue.clients());
        let mut state = Self {
            server: Server::new(clients),
            phases: [Phase::Idle; MOST_ATTEMPTS],
            connected: clients,
            requests: Vec::new(),
            late: Vec::new(),
            answers: Vec::new(),
            cuts_left: queue.cuts,
            expiries_left: queue.expiries,
            watch: Watch::new(),
        };
        if let Some(holder) = queue.holder {
            execute(queue, &mut state.server, Request::Acquire(holder));
            queue.hand_over(&mut state, holder, 1, true);
        }
        state
    }

    /// Whether no request is under way. Answers may be: they count as lost.
    pub(crate) fn is_quiet(&self) -> bool {
        self.late.is_empty() && self.requests.is_empty()
    }

    /// Whether nobody wants anything any more.
    pub(crate) fn is_over(&self) -> bool {
        let over = |phase: &Phase| matches!(phase, Phase::Idle | Phase::Ended);
        self.is_quiet() && self.phases.iter().all(over)
    }

    /// The oldest request on each connection.
    pub(crate) fn next_requests(&self, queue: &Queue) -> impl Iterator<Item = Request> {
        let client = |request: &Request| queue.client(request.by());
        self.requests
            .chunk_by(move |a, b| client(a) == client(b))
            .filter_map(|requests| requests.first().copied())
    }

    /// Puts a request on the connection of its client, unless it is there already. Without a
    /// connection it is not sent now; it will be, because the phase asks for it.
    pub(crate) fn send(&mut self, queue: &Queue, request: Request) {
        let client = queue.client(request.by());
        if self.connected.contains(client) && !self.requests.contains(&request) {
            let not_after = |other: &Request| queue.client(other.by()) <= client;
            let position = self.requests.partition_point(not_after);
            self.requests.insert(position, request);
        }
    }

    /// Sends an answer, which gets lost if the client has no connection.
    pub(crate) fn answer(&mut self, queue: &Queue, answer: Answer) {
        if self.connected.contains(queue.client(answer.to())) {
            insert_sorted(&mut self.answers, answer);
            self.answers.dedup();
        }
    }

    /// Forgets answers that would change nothing any more. A push that tells a holder what it
    /// already knows must change nothing; this is checked in models with few states.
    pub(crate) fn forget_deaf(&mut self, queue: &Queue) {
        let phases = &self.phases;
        self.answers.retain(|answer| match phases[answer.to()] {
            Phase::Idle | Phase::Unregistered | Phase::Waiting | Phase::Confirming(_) => true,
            Phase::Holding {
                token: held,
                confirmed,
            } => match answer {
                Answer::Push(_, token) => *token > held || queue.late_pushes,
                Answer::Granted { token, .. } => *token > held,
                Answer::Confirmed(..) | Answer::NotConfirmed(..) => !confirmed,
                _ => false,
            },
            Phase::Releasing(..) => match answer {
                Answer::Released(_) | Answer::NotReleased(_) => true,
                Answer::Push(..) => queue.late_pushes,
                _ => false,
            },
            Phase::Cancelling => match answer {
                Answer::Cancelled(_) => true,
                Answer::Push(to, _) => queue.has_siblings(*to),
                _ => false,
            },
            Phase::Ended => {
                matches!(answer, Answer::Push(to, _) if queue.has_siblings(*to))
            }
        });
    }

    /// The request that the phase of an attempt calls for.
    pub(crate) fn due(&self, attempt: Attempt) -> Option<Request> {
        match self.phases[attempt] {
            Phase::Idle | Phase::Ended => None,
            Phase::Unregistered | Phase::Waiting => Some(Request::Acquire(attempt)),
            Phase::Confirming(token) => Some(Request::Confirm(attempt, token)),
            Phase::Holding { confirmed, token } => {
                (!confirmed).then_some(Request::Confirm(attempt, token))
            }
            Phase::Releasing(token, tombstone) => Some(Request::Release(attempt, token, tombstone)),
            Phase::Cancelling => Some(Request::Cancel(attempt)),
        }
    }
}

/// Keeps states equal that only differ in the order of unordered things.
pub(crate) fn insert_sorted<T: Ord>(items: &mut Vec<T>, item: T) {
    let position = items.partition_point(|other| *other < item);
    items.insert(position, item);
}
