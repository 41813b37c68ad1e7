//! The clients of an endpoint, which are made once and go on through everything that happens to it.

use std::{fmt::Debug, time::Duration};

use e2e::observer::until;
use fenced_store::{FencedGuard, FencedLocks};
use futures_util::future::join_all;
use lock_core::{Error, ErrorKind, LeaseGuard, LostReason, Sequencer, Ttl};
use reqwest::StatusCode;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    failover::{
        books::{Book, Books},
        members::Members,
    },
    gateway::Gateway,
};

/// How long anything may take to recover.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Of most leases.
pub(crate) const TTL: Ttl = Ttl::secs(3);

/// Of the holder's lease, which a short silence does not cost, and a long outage does.
pub(crate) const HELD_TTL: Ttl = Ttl::secs(6);

/// Of the leases that no case outlasts. A session of ZooKeeper has no longer ones.
const LONG: Ttl = Ttl::secs(15);

/// Parameters of every URL of a lock service.
pub(crate) const IMPATIENT: &str = "response_timeout_ms=500";

/// Where the clients of a crew find what they need.
pub(crate) struct Place {
    /// The word for it in the table of times.
    pub(crate) name: &'static str,
    pub(crate) lock: String,
    pub(crate) store: String,
    /// Whether lock service and store are one database.
    pub(crate) is_one: bool,
    /// Whether the lock service is behind the endpoint.
    pub(crate) loses_leases: bool,
    /// Whether the store is.
    pub(crate) loses_store: bool,
}

/// A manager and a pool, a gateway, a leader and jobs.
pub(crate) struct Crew<DB: Books> {
    pub(crate) place: Place,
    shop: FencedLocks<DB>,
    rival: FencedLocks<DB>,
    gateway: Gateway,
    /// The `Fencing-Token` of an account.
    account: String,
    /// A grant by which only the pool is used.
    claimed: Sequencer,
    members: Members,
}

/// The leases of a crew when something happens.
pub(crate) struct Before<DB: Books> {
    held: FencedGuard<DB>,
    /// The balances that the holder has read, with the fence and without.
    read: [i64; 2],
    blocker: LeaseGuard,
    waiter: JoinSet<Result<LeaseGuard, Error>>,
}

/// How long each took from the moment on at which the endpoint was as before.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) manager: Duration,
    pub(crate) waiter: Duration,
    pub(crate) leader: Duration,
    pub(crate) job: Duration,
    pub(crate) gateway: Duration,
    pub(crate) pool: Duration,
    pub(crate) is_kept: bool,
}

impl<DB: Books> Crew<DB> {
    /// The store is new.
    pub(crate) async fn new(place: Place) -> Self {
        let (lock, store) = (&*place.lock, &*place.store);
        DB::open(store).await;
        let shop = DB::shop(&place).await;
        let gateway = Gateway::start_with(&["--lock", lock, "--store", store]).await;
        until("the gateway grants", async || {
            let first = gateway.acquire("first", json!({ "ttl_ms": ms(LONG) }));
            first.await.status.is_success()
        })
        .await;
        let account = gateway.token("account:1", ms(LONG)).await;
        let claimed = shop.acquire("pool").ttl(LONG).await.unwrap();
        Self {
            rival: DB::shop(&place).await,
            members: Members::spawn(&shop),
            claimed: claimed.sequencer().clone(),
            account,
            gateway,
            shop,
            place,
        }
    }

    /// A holder, a waiter behind another holder, and all others at work.
    pub(crate) async fn before(&self) -> Before<DB> {
        let held = self.shop.acquire("held").ttl(HELD_TTL).await.unwrap();
        let blocker = self.rival.locks().acquire("waited").ttl(LONG);
        let blocker = blocker.await.unwrap();
        let wait = self.shop.locks().acquire("waited").ttl(LONG).wait(PATIENCE);
        let mut waiter = JoinSet::new();
        waiter.spawn(wait.into_future());
        until("it waits", async || {
            let seen = self.rival.locks().inspect("waited").await;
            seen.is_ok_and(|seen| seen.waiters != Some(0))
        })
        .await;
        self.members.are_at_work().await;
        Before {
            read: self.balances().await,
            held,
            blocker,
            waiter,
        }
    }

    async fn balances(&self) -> [i64; 2] {
        let read = async |book| DB::balance(self.rival.store(), book).await.unwrap();
        [read(Book::Held).await, read(Book::Twin).await]
    }

    /// Until its lock service has not answered in time.
    pub(crate) async fn has_no_answer(&self) {
        let refused = self.shop.locks().inspect("held").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    }

    /// Until everything is refused that needs what is behind the endpoint.
    pub(crate) async fn is_refused(&self) {
        until("requests are refused", async || {
            let [leased, written] = self.tries().await;
            let claimed = self.shop.store().claim(&self.claimed).await;
            let granted = self.shop.locks().try_acquire("free").await;
            let is_refused = granted.is_err_and(|error| {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                error.may_pass()
            });
            let lock = !self.place.loses_leases || (is_refused && leased == 503);
            let store = !self.place.loses_store || (claimed.is_err() && written == 503);
            lock && store
        })
        .await;
    }

    /// Until the holder knows that its lease has ended.
    pub(crate) async fn loses(&self, before: &Before<DB>) {
        if self.place.loses_leases {
            let lost = timeout(PATIENCE, before.held.lost()).await;
            assert_eq!(lost.expect("it is lost").reason(), LostReason::Expired);
        }
    }

    /// Acquires something at the gateway, and writes. 503 says that the same may be sent again.
    async fn tries(&self) -> [StatusCode; 2] {
        let free = format!("r{:016x}", rand::random::<u64>());
        let free = self.gateway.acquire(&free, json!({ "ttl_ms": ms(LONG) }));
        let path = "/v1/accounts/1";
        let written = self.gateway.write(path, Some(&self.account), 7);
        let (acquired, written) = tokio::join!(free, written);
        for answer in [&acquired, &written] {
            let is_right = answer.status.is_success() || answer.status == 503;
            assert!(is_right, "{answer:?}");
        }
        [acquired.status, written.status]
    }

    /// Everything works again.
    pub(crate) async fn recovers(&self, before: Before<DB>, back: Instant) -> Recovery {
        let Before {
            held,
            read,
            blocker,
            waiter,
        } = before;
        let all = async {
            tokio::join!(
                self.manages(back),
                waits(blocker, waiter, back),
                self.members.leads(back),
                self.members.works(back),
                self.serves(back),
                self.commits(back),
            )
        };
        let all = timeout(PATIENCE, all).await.expect("all recover");
        let (manager, waiter, leader, job, gateway, pool) = all;
        let is_kept = held.remaining().is_ok();
        if is_kept {
            let seen = self.rival.locks().inspect("held").await.unwrap();
            let holder = seen.holder.map(|holder| holder.token);
            assert_eq!(holder, Some(held.token()), "its lease is another's");
            let mut tx = held.begin().await.unwrap();
            DB::add(&mut tx, Book::Held).await.unwrap();
            tx.commit_and_release(held).await.unwrap();
        } else {
            self.goes_on_stale(held.sequencer(), read).await;
        }
        Recovery {
            manager,
            waiter,
            leader,
            job,
            gateway,
            pool,
            is_kept,
        }
    }

    async fn manages(&self, back: Instant) -> Duration {
        let locks = self.shop.locks();
        done(back, "acquire and release", async || {
            let guard = locks.acquire("free").ttl(TTL).wait(PATIENCE).await?;
            guard.release().await
        })
        .await
    }

    async fn commits(&self, back: Instant) -> Duration {
        done(back, "a fenced transaction", async || {
            let mut tx = self.shop.store().begin(&self.claimed).await?;
            DB::add(&mut tx, Book::Pool).await?;
            tx.commit().await
        })
        .await
    }

    /// The gateway has recovered when it answers well on each of its connections, and then to
    /// several requests at once. Its session may still be a new one, so that takes a moment.
    async fn serves(&self, back: Instant) -> Duration {
        let is_well = |statuses: &[StatusCode; 2]| statuses.iter().all(StatusCode::is_success);
        until("the gateway serves", async || is_well(&self.tries().await)).await;
        let took = back.elapsed();
        until("the gateway serves several at once", async || {
            let all = join_all((0..20).map(|_| self.tries())).await;
            all.iter().all(is_well)
        })
        .await;
        took
    }

    /// Another client holds and writes, and then the one that has lost its lease goes on. The store
    /// refuses it. Without the fence, the other one's write is gone.
    async fn goes_on_stale(&self, stale: &Sequencer, [read, twin]: [i64; 2]) {
        let next = self.rival.acquire("held").ttl(TTL).wait(PATIENCE);
        let next = next.await.unwrap();
        assert!(next.token() > stale.token());
        let mut tx = next.begin().await.unwrap();
        DB::write(&mut tx, Book::Held, read + 1).await.unwrap();
        tx.commit_and_release(next).await.unwrap();
        DB::write_unfenced(self.rival.store(), Book::Twin, twin + 1).await;

        let refused = self.shop.store().begin(stale).await.map(drop);
        assert!(refused.unwrap_err().is_fenced());
        DB::write_unfenced(self.shop.store(), Book::Twin, twin + 1).await;
        assert_eq!(
            self.balances().await,
            [read + 1, twin + 1],
            "two have written"
        );
    }

    /// The end of all clients.
    pub(crate) async fn ends(self) {
        self.members.end(&self.shop).await;
    }
}

/// The place in line is kept.
async fn waits(
    blocker: LeaseGuard,
    mut waiter: JoinSet<Result<LeaseGuard, Error>>,
    back: Instant,
) -> Duration {
    // The watchdog repeats a release that an outage has cost.
    drop(blocker);
    let granted = waiter.join_next().await.unwrap().unwrap();
    let took = back.elapsed();
    granted.unwrap().release().await.unwrap();
    took
}

/// How long it takes until this succeeds.
async fn done<T, E: Debug>(
    back: Instant,
    what: &str,
    attempt: impl AsyncFn() -> Result<T, E>,
) -> Duration {
    loop {
        match attempt().await {
            Ok(_) => return back.elapsed(),
            Err(error) => assert!(back.elapsed() < PATIENCE, "{what}: {error:?}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

fn ms(ttl: Ttl) -> u64 {
    u64::try_from(ttl.get().as_millis()).unwrap()
}
