use std::{
    cmp::min,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{
    FencingToken,
    backend::{AcquireRequest, AttemptRef, Grant, Lease, Moment, Runtime, Wake, support::lock},
};
use tokio::sync::Notify;

/// A client of the service, with the numbers of its messages.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: u32,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) requests: AtomicU64,
    pub(super) pushes: AtomicU64,
}

/// One attempt of a client. The service keeps it in a queue to push to it.
pub(super) struct Asker {
    client: Arc<Client>,
    request: AcquireRequest,
    heard: Mutex<Heard>,
    news: Notify,
    copied: AtomicBool,
}

/// The news of an attempt.
#[derive(Debug, Default)]
struct Heard {
    /// The latest push that the attempt has not read, and the moment when it came.
    unread: Option<(Pushed, Moment)>,
    /// Whether a push asks the attempt to look.
    must_look: bool,
    /// When the last answered request was sent, and when the service answered it.
    exchange: Option<(Moment, Stamp)>,
    first_sent: Option<Moment>,
}

/// A moment at the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// How many requests came before: the clock may stand still, or jump.
    pub(super) number: u64,
    /// By the clock of the service.
    pub(super) at: Moment,
}

/// A push on its way.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) asker: Arc<Asker>,
    /// `None` asks the waiter to look.
    pub(super) pushed: Option<Pushed>,
}

/// A grant that no request has asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    pub(super) token: FencingToken,
    pub(super) length: Duration,
    pub(super) stamp: Stamp,
    pub(super) is_whole: bool,
}

impl Client {
    pub(super) fn new(number: u32, runtime: Arc<dyn Runtime>) -> Arc<Self> {
        Arc::new(Self {
            number,
            runtime,
            requests: AtomicU64::new(0),
            pushes: AtomicU64::new(0),
        })
    }
}

impl Asker {
    pub(super) fn new(client: &Arc<Client>, request: &AcquireRequest) -> Arc<Self> {
        Arc::new(Self {
            client: Arc::clone(client),
            request: request.clone(),
            heard: Mutex::default(),
            news: Notify::new(),
            copied: AtomicBool::new(false),
        })
    }

    pub(super) const fn request(&self) -> &AcquireRequest {
        &self.request
    }

    pub(super) const fn attempt(&self) -> &AttemptRef {
        &self.request.attempt
    }

    pub(super) const fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(super) fn is_copied(&self) -> bool {
        self.copied.load(Ordering::Relaxed)
    }

    /// Notes that a copy of a request of the attempt may arrive later.
    pub(super) fn set_copied(&self) {
        self.copied.store(true, Ordering::Relaxed);
    }

    /// Notes that a request is sent. Returns whether another one was sent before.
    pub(super) fn sends(&self, now: Moment) -> bool {
        let first_sent = &mut lock(&self.heard).first_sent;
        let is_again = first_sent.is_some();
        first_sent.get_or_insert(now);
        is_again
    }

    /// The request that was sent then was answered: the attempt had nothing.
    pub(super) fn answered(&self, sent: Moment, stamp: Stamp) {
        let mut heard = lock(&self.heard);
        let last = heard.exchange.map(|(_, last)| last.number);
        if last.is_none_or(|last| last < stamp.number) {
            heard.exchange = Some((sent, stamp));
        }
    }

    /// A push arrives. Of two that are not read, the later one counts.
    pub(super) fn receive(&self, pushed: Option<Pushed>) {
        let received = self.client.runtime.now();
        {
            let heard = &mut *lock(&self.heard);
            let last = heard.unread.map(|(last, _)| last.stamp.number);
            match pushed {
                Some(pushed) if last.is_none_or(|last| last <= pushed.stamp.number) => {
                    heard.unread = Some((pushed, received));
                }
                Some(_) => {}
                None => heard.must_look = true,
            }
        }
        self.news.notify_one();
    }

    /// The next wake-up.
    ///
    /// # Cancel safety
    /// Cancel safe: no wake-up is lost.
    pub(super) async fn woken(&self) -> Wake {
        loop {
            if let Some(wake) = self.read() {
                return wake;
            }
            self.news.notified().await;
        }
    }

    fn read(&self) -> Option<Wake> {
        let mut heard = lock(&self.heard);
        let must_look = std::mem::take(&mut heard.must_look);
        let Some((pushed, received)) = heard.unread.take() else {
            return must_look.then_some(Wake::Look);
        };
        let grant = self.grant_of(pushed, received, &heard);
        // A lease with less than half of its time has to be confirmed, so that it is of use.
        let left = grant.lease.deadline().since(received);
        let is_whole = pushed.is_whole && left >= self.request.ttl.get() / 2;
        Some(match is_whole {
            true => Wake::Granted(grant),
            false => Wake::Offered(grant),
        })
    }

    /// The grant of a push. Its lease is counted from the time when the service granted it. An
    /// earlier answer with the service's time says when that was. Without such an answer the lease
    /// is counted from the first request. If the clock of the service was set forward meanwhile,
    /// the lease is no longer than if it had been granted when the push arrived.
    ///
    /// A push that is older than the last answer grants nothing, because that answer said that the
    /// attempt has nothing.
    fn grant_of(&self, pushed: Pushed, received: Moment, heard: &Heard) -> Grant {
        let length = min(pushed.length, self.request.ttl.get());
        let (granted, length) = match heard.exchange {
            Some((_, last)) if pushed.stamp.number < last.number => (received, Duration::ZERO),
            Some((sent, last)) => (sent + pushed.stamp.at.since(last.at), length),
            None => (heard.first_sent.unwrap_or(received), length),
        };
        Grant::new(
            pushed.token,
            Lease::counted_from(min(granted, received), length),
        )
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("client", &self.client.number)
            .field("attempt", &self.request.attempt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Holder, ResourceName, Ttl};
    use lock_testing::ManualClock;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn asker() -> Arc<Asker> {
        let runtime: Arc<dyn Runtime> = Arc::new(ManualClock::seeded(1));
        let resource = ResourceName::new("r").unwrap();
        let attempt = AttemptRef::new(&*runtime, resource, Holder::draw(&*runtime));
        let request = AcquireRequest::new(attempt, Ttl::new(TTL).unwrap());
        Asker::new(&Client::new(0, runtime), &request)
    }

    fn stamp(number: u64) -> Stamp {
        let at = Moment::from_origin(Duration::from_secs(number));
        Stamp { number, at }
    }

    fn pushed(number: u64) -> Option<Pushed> {
        Some(Pushed {
            token: FencingToken::new(number).unwrap(),
            length: TTL,
            stamp: stamp(number),
            is_whole: true,
        })
    }

    fn token(wake: Option<Wake>) -> u64 {
        match wake {
            Some(Wake::Granted(grant)) => grant.token.get(),
            wake => panic!("{wake:?}"),
        }
    }

    /// Catches: an older push that is read instead of a later one that has overtaken it.
    #[test]
    fn of_two_pushes_the_later_one_is_read() {
        for order in [[1, 2], [2, 1]] {
            let asker = asker();
            for number in order {
                asker.receive(pushed(number));
            }
            asker.receive(None);
            assert_eq!(token(asker.read()), 2, "{order:?}");
            assert_eq!(
                asker.read(),
                None,
                "a grant says more than that it may be time to look"
            );
        }
        let asker = asker();
        asker.receive(None);
        assert_eq!(asker.read(), Some(Wake::Look));
    }

    /// Catches: a push that is compared with an answer that the last one has overtaken.
    #[test]
    fn of_two_answers_the_later_one_counts() {
        let asker = asker();
        let sent = Moment::default();
        asker.answered(sent, stamp(3));
        asker.answered(sent, stamp(1));
        asker.receive(pushed(2));
        let wake = asker.read();
        assert!(matches!(wake, Some(Wake::Offered(_))), "{wake:?}");
    }
}
