use std::time::Duration;

/// The faults of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault: for a trap that only reports that its message has passed.
    Nothing,
    /// Requests wait in the network, even if their client goes away. Replies pass.
    HoldRequests,
    /// Replies and pushes wait in the network. Requests pass.
    HoldReplies,
    /// Nothing passes in either direction, and neither end notices.
    BlackHole,
    /// Requests are swallowed, and the connection stays open.
    DropRequests,
    /// Requests are served, replies and pushes are swallowed, and the connection stays open.
    DropReplies,
    /// Pushes are swallowed. Requests and replies pass.
    DropPushes,
    /// Everything takes this much longer, in each direction.
    Delay(Duration),
    /// Both ends see that the other one has closed (FIN); messages under way are lost.
    Cut,
    /// Both ends see that the connection is gone (RST).
    Reset,
}

/// How the messages of a connection are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) requests: Passage,
    pub(super) replies: Passage,
    pub(super) pushes: Passage,
    pub(super) delay: Duration,
    pub(super) broken: Option<Break>,
}

/// How the messages of one kind are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Passage {
    #[default]
    Pass,
    Hold,
    Drop,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    Cut,
    Reset,
}

impl Flow {
    pub(super) fn suffer(&mut self, fault: Fault) {
        use Passage::{Drop, Hold};

        match fault {
            Fault::Nothing => {}
            Fault::HoldRequests => self.requests.becomes(Hold),
            Fault::HoldReplies => {
                self.replies.becomes(Hold);
                self.pushes.becomes(Hold);
            }
            Fault::BlackHole => {
                self.suffer(Fault::HoldRequests);
                self.suffer(Fault::HoldReplies);
            }
            Fault::DropRequests => self.requests.becomes(Drop),
            Fault::DropReplies => {
                self.replies.becomes(Drop);
                self.pushes.becomes(Drop);
            }
            Fault::DropPushes => self.pushes.becomes(Drop),
            Fault::Delay(delay) => self.delay = delay,
            Fault::Cut => self.broken = Some(Break::Cut),
            Fault::Reset => self.broken = Some(Break::Reset),
        }
    }

    /// Ends the faults that can end: lost messages stay lost, and broken connections stay broken.
    pub(super) fn heal(&mut self) {
        self.delay = Duration::ZERO;
        for passage in [&mut self.requests, &mut self.replies] {
            if *passage == Passage::Hold {
                *passage = Passage::Pass;
            }
        }
        // A push may be lost by itself, unless whole replies were lost.
        if self.replies == Passage::Pass {
            self.pushes = Passage::Pass;
        }
    }
}

impl Passage {
    /// A direction that has lost a message passes no later one, because later replies would answer
    /// the wrong requests.
    fn becomes(&mut self, worse: Self) {
        if *self != Self::Drop {
            *self = worse;
        }
    }
}
