use std::time::Duration;

use lock_core::{
    FencingToken, Holder, ResourceName,
    backend::{AttemptId, Moment},
};

/// Sees what happens in the service and in its network, in order.
///
/// It must not ask the service for anything: the service is in the middle of a step.
pub trait Observe: Send + Sync {
    /// Something has happened at this moment of the network's clock.
    fn observe(&self, at: Moment, event: Event);
}

impl<F: Fn(Moment, Event) + Send + Sync> Observe for F {
    fn observe(&self, at: Moment, event: Event) {
        self(at, event);
    }
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client has sent a request.
    Sent(Sent),
    /// The service has read a request, or a copy of one.
    Arrived {
        /// The request.
        message: MessageId,
        /// Whether it is a copy of a request that arrived before, or was lost before.
        copy: bool,
    },
    /// A request of an acquisition or attempt that has ended has got nothing.
    Buried {
        /// The request.
        by: MessageId,
        /// How the acquisition or the attempt has ended.
        end: Burial,
    },
    /// A request has lifted the counter to the floor that it named.
    Lifted(MessageId),
    /// A request found the service down.
    Refused(MessageId),
    /// The answer to a request has come back to its client, who may have gone.
    Answered(MessageId),
    /// A push has come to its client, who may have gone.
    Pushed {
        /// The client.
        client: u32,
        /// The attempt that waits.
        attempt: AttemptId,
        /// The token of the pushed grant. Without a token the attempt just looks.
        token: Option<FencingToken>,
    },
    /// A request has changed the state of the service.
    Changed(Effect),
    /// Something has happened to the service itself.
    Fault(Fault),
}

/// The end of an acquisition, or of an attempt, that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Burial {
    /// The lease was released.
    Released,
    /// The attempt was cancelled.
    Cancelled,
    /// The lease ran out, or was ended by force.
    Over,
}

/// A request on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which request.
    pub message: MessageId,
    /// Its kind.
    pub kind: Kind,
    /// The resource, or the first of several. A list has none.
    pub resource: Option<ResourceName>,
}

/// The number of a request among those of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// The client.
    pub client: u32,
    /// From 0 on.
    pub number: u64,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Asks for a lease.
    Look {
        /// Takes a place in the queue, too.
        queue: bool,
    },
    /// Makes a whole lease of an offer.
    Confirm,
    /// Ends an attempt.
    Cancel,
    /// Renews leases.
    Renew,
    /// Ends a lease.
    Release,
    /// Gives one hold back.
    ReleaseHold,
    /// Ends a lease by force.
    ForceRelease,
    /// Looks at a resource.
    Inspect,
    /// Looks at all resources.
    List,
    /// Asks for several leases at once.
    Together,
}

/// A change of the state of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The request that made the change, or that found it out.
    pub by: MessageId,
    /// The resource.
    pub resource: ResourceName,
    /// The holder of the lease or of the place. Its `Debug` shows no secret.
    pub holder: Holder,
    /// The change.
    pub change: Change,
}

/// The kinds of changes of an [`Effect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A lease begins.
    Granted {
        /// Its token.
        token: FencingToken,
        /// The attempt that has it.
        attempt: AttemptId,
        /// Its end, by the network's clock, if the service's clock is not stepped.
        until: Moment,
        /// How the attempt learns of it.
        way: Way,
    },
    /// A further attempt of the holder has got the living lease.
    Joined {
        /// The token of the lease.
        token: FencingToken,
        /// The attempt.
        attempt: AttemptId,
    },
    /// An offer has become a whole lease.
    Confirmed {
        /// The token of the lease.
        token: FencingToken,
        /// Its end now, as in `Granted`.
        until: Moment,
    },
    /// A lease goes on.
    Renewed {
        /// The token of the lease.
        token: FencingToken,
        /// Its end now, as in `Granted`.
        until: Moment,
    },
    /// An attempt has given its hold back, and the lease goes on.
    HoldEnded {
        /// The token of the lease.
        token: FencingToken,
        /// The attempt.
        attempt: AttemptId,
    },
    /// A lease has ended. Its expiry shows only when the next request looks at the resource.
    Ended {
        /// The token of the lease.
        token: FencingToken,
        /// How.
        how: HowEnded,
    },
    /// An attempt has taken a place at the end of the queue.
    Queued {
        /// The attempt.
        attempt: AttemptId,
    },
    /// An attempt has left the queue, or has lost its place.
    Unqueued {
        /// The attempt.
        attempt: AttemptId,
    },
}

/// How an attempt learns of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// By the answer to its request.
    Answer,
    /// By a push, and the lease is whole.
    Push,
    /// By a push, and the lease has to be confirmed.
    Offer,
}

/// How a lease has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HowEnded {
    /// It was released.
    Released,
    /// Its last hold was given back.
    LastHold,
    /// The last attempt that knew of it was cancelled.
    Cancelled,
    /// It ran out.
    Expired,
    /// It was offered, and not confirmed in time.
    OfferExpired,
    /// It was ended by force.
    Forced {
        /// The token above the token of the lease, which no holder gets.
        revocation: FencingToken,
    },
}

/// Something that has happened to the service itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// All places in queues are gone.
    QueueLost,
    /// The service is empty, and its counter starts anew.
    EverythingLost,
    /// The service goes on as an older copy.
    FailedOver,
    /// The service answers nothing until then.
    Paused(Moment),
    /// The service begins to refuse connections, or stops doing so.
    Down(bool),
    /// Its clock jumps forward by this.
    ClockForward(Duration),
    /// Its clock jumps back by this.
    ClockBack(Duration),
}
