//! The clean-up for a guard that was dropped while the lock service did not answer: the times at
//! which it is tried.

use std::time::Duration;

use lock_core::{Acquire, Operation, Owner, Ttl, backend::Runtime};
use lock_testing::Fault;

use crate::world::{World, world, yield_to_others};

const SECOND: Duration = Duration::from_secs(1);

impl World {
    /// Drops a guard while no release arrives. Returns the moments at which a release is sent,
    /// counted from the drop, until the release is given up.
    async fn releases_of(&self, acquire: Acquire) -> Vec<Duration> {
        let guard = acquire.renew(false).await.unwrap();
        self.chaos.always(Operation::Release, Fault::DropRequest);
        let (dropped, mut sent) = (self.clock.now(), Vec::new());
        drop(guard);
        loop {
            yield_to_others().await;
            let requests = self.chaos.counts(Operation::Release).requests;
            if requests > sent.len() {
                sent.push(self.clock.now().since(dropped));
                assert_eq!(requests, sent.len(), "twice at one moment");
            }
            if self.locks().stats().abandoned > 0 {
                return sent;
            }
            let wake = self.clock.next_wake().expect("it will go on");
            self.clock.advance(wake.since(self.clock.now()));
        }
    }
}

/// A service in trouble must not get a request every second for each of more and more dropped
/// guards.
/// Catches: clean-up whose pauses do not grow, or that goes on although nothing can be left.
#[tokio::test]
async fn a_release_that_does_not_arrive_is_sent_ever_more_rarely_until_it_is_given_up() {
    // The columns: whether others may keep the lease up, its ttl in seconds, the seconds for which
    // a release is tried, and the seconds of the longest pause.
    for (shared, ttl, patience, longest) in [
        (false, 9, 9, 1),
        (false, 24, 24, 2),
        (false, 600, 600, 5),
        (true, 1, 60, 5),
        (true, 24, 60, 5),
        (true, 84, 84, 5),
    ] {
        let (world, owner) = (world(), Owner::new());
        let acquire = world.locks().acquire("r").ttl(Ttl::secs(ttl));
        let acquire = if shared {
            acquire.owner(&owner)
        } else {
            acquire
        };
        let sent = world.releases_of(acquire).await;
        let mut expected = vec![Duration::ZERO];
        let mut pause = Duration::from_millis(20);
        let (patience, longest) = (SECOND * patience, SECOND * longest);
        while expected[expected.len() - 1] + pause < patience {
            expected.push(expected[expected.len() - 1] + pause);
            pause = std::cmp::min(pause * 2, longest);
        }
        assert_eq!(sent, expected, "shared: {shared}, ttl: {ttl} s");
    }
}
