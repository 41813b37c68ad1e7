//! Tombstones need no lease of their own, and delay no renewal and no waiter.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, etcd, until},
};
use futures_util::future::join_all;
use lock_core::{
    ErrorKind, Holder, Issuer, Released, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, BoxFuture, ConnectOptions, LockBackend, LockBackendExt, Moment,
        RenewRequest, Renewed, Runtime, TokioRuntime, Wait,
    },
};
use palisade_etcd::EtcdBackend;
use tokio::time::timeout;

use crate::{
    leak::Leak,
    world::{PATIENCE, backend, keys, manager, named, prefix},
};

const TTL: Ttl = Ttl::secs(20);
/// Less than half of the sum of a minute and a ttl. A tombstone that was just moved is not due
/// again within this time.
const SOON: Duration = Duration::from_secs(25);
/// The number of leases that are renewed together.
const MANY: usize = 100;

/// Leases of `MANY` resources, acquired at the same time.
pub(crate) async fn acquired(backend: &EtcdBackend) -> Vec<RenewRequest> {
    let issuer = Issuer::new("test").unwrap();
    let acquired = (0..MANY).map(async |number| {
        let resource = named(&format!("r{number}"));
        let attempt = AttemptRef::new(&TokioRuntime, resource.clone(), Holder::random());
        let holder = attempt.holder;
        let answer = backend.acquire(&AcquireRequest::new(attempt, TTL)).await;
        let token = answer.unwrap().granted().unwrap().token;
        let lease = Sequencer::new(issuer.clone(), resource, token, holder);
        RenewRequest::new(lease, TTL)
    });
    join_all(acquired).await
}

/// The number of tombstones that were moved.
async fn moved(server: &Etcd, prefix: &str) -> usize {
    let marks = format!("{prefix}/tombstone/");
    let marks = ["get", "--prefix", &marks, "--write-out=json"];
    let marks = server.ctl(&marks).await;
    marks.matches(r#""version":2"#).count()
}

/// A client that takes leases over does not know to which leases their tombstones are attached, and
/// moves all of them. Every request takes a while, and all leases are renewed before the last
/// tombstone is moved.
#[tokio::test]
async fn leases_whose_marks_are_due_at_the_same_time_are_renewed_first() {
    // The test is tried again, because a renewal also fails if the machine stands still for
    // seconds.
    for _ in 0..3 {
        if are_renewed_first().await {
            return;
        }
    }
    panic!("renewals had no answer in time, each time");
}

/// One try. Returns false if the answer to a renewal came too late.
async fn are_renewed_first() -> bool {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let (one, other) = (
        backend(&server.url(), &prefix).await,
        backend(&proxy.url("etcd"), &prefix).await,
    );
    let leases = acquired(&one).await;
    proxy.inflict(Fault::Delay(Duration::from_millis(160)));
    let renewed = other.renew(&leases).await;
    // No tombstone is moved during the look, however long the look takes.
    proxy.inflict(Fault::HoldRequests);
    let moved_before = moved(server, &prefix).await;
    let now = TokioRuntime.now();
    for renewed in renewed {
        match renewed {
            Ok(Renewed::Renewed(lease)) => assert!(lease.deadline() > now, "lost"),
            Err(error) if error.kind() == ErrorKind::Unavailable => return false,
            other => panic!("{other:?}"),
        }
    }
    assert!(moved_before < MANY, "renewals have waited for the marks");
    proxy.let_go();
    until("every mark was moved", || async {
        moved(server, &prefix).await == MANY
    })
    .await;
    true
}

/// Each acquisition asks for the lease of tombstones before the first of them has its answer.
#[tokio::test]
async fn acquisitions_at_the_same_time_are_remembered_on_one_lease() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    assert_eq!(acquired(&backend).await.len(), MANY);
    let leases = server.ctl(&["lease", "list"]).await;
    let expected = format!("found {} leases", MANY + 1);
    assert!(leases.starts_with(&expected), "{leases}");
}

/// A clock that runs faster than the clock of the server from this moment on.
#[derive(Debug, Default)]
struct Fast(OnceLock<Moment>);

const TIMES: u32 = 20;

impl Runtime for Fast {
    fn now(&self) -> Moment {
        let now = TokioRuntime.now();
        let fast = self.0.get().map(|from| now.since(*from));
        now + fast.unwrap_or_default() * (TIMES - 1)
    }

    fn unix_time(&self) -> Duration {
        TokioRuntime.unix_time()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        TokioRuntime.sleep_until(match self.0.get() {
            Some(from) => *from + moment.since(*from) / TIMES,
            None => moment,
        })
    }
}

/// One acquisition is released, the lease of another runs out, and the last is held.
#[tokio::test]
async fn a_tombstone_is_deleted_minutes_later_unless_its_lease_is_held() {
    let (server, prefix) = (etcd().await, prefix());
    let options = ConnectOptions::from(server.url()).prefix(&prefix);
    // The longest timeout, because the same fast clock counts it.
    let options = options.response_timeout(Duration::from_secs(3));
    let clock = Arc::new(Fast::default());
    let backend = EtcdBackend::connect(options, Arc::<Fast>::clone(&clock));
    let backend = backend.await.unwrap();
    let tombstones = format!("{prefix}/tombstone/");
    let mut held = Vec::new();
    for (name, ttl) in [("held", 3600), ("runs-out", 1), ("released", 600)] {
        let attempt = AttemptRef::new(&TokioRuntime, named(name), Holder::random());
        let request = AcquireRequest::new(attempt, Ttl::secs(ttl));
        let token = backend
            .acquire(&request)
            .await
            .unwrap()
            .granted()
            .unwrap()
            .token;
        if name == "held" {
            held = keys(server, &tombstones).await;
        }
        if name == "released" {
            let issuer = Issuer::new("test").unwrap();
            let lease = Sequencer::new(issuer, named(name), token, request.attempt.holder);
            assert_eq!(
                backend.release(&lease, true).await.unwrap(),
                Released::Released
            );
        }
    }
    assert_eq!(keys(server, &tombstones).await.len(), 3);
    // Requests are repeated from here on, so an answer that comes too late does no harm.
    clock.0.set(TokioRuntime.now()).unwrap();
    until("they are deleted", async || {
        keys(server, &tombstones).await.len() == 1
    })
    .await;
    assert_eq!(keys(server, &tombstones).await, held);
}

/// A waiter behind a holder. The waiter's client does not know to which lease the tombstone is
/// attached, and its requests to move the tombstone get lost.
struct Due {
    server: &'static Etcd,
    line: String,
    /// The client that has made the place.
    early: EtcdBackend,
    late: EtcdBackend,
    leak: Leak,
    waiter: AcquireRequest,
    mark: String,
    holder: Sequencer,
}

impl Due {
    async fn new(ttl: Ttl) -> Self {
        let (server, prefix) = (etcd().await, prefix());
        let leak = Leak::start(server.addresses()[0]).await;
        let (early, late) = (
            backend(&server.url(), &prefix).await,
            backend(&leak.url(), &prefix).await,
        );
        let (line, marks) = (format!("{prefix}/lock/"), format!("{prefix}/tombstone/"));
        let [holder, mut waiter] = [Ttl::secs(600), ttl].map(|ttl| {
            let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
            AcquireRequest::new(attempt, ttl)
        });
        waiter.wait = Wait::Forever;
        let grant = early.acquire(&holder).await.unwrap().granted().unwrap();
        let others = keys(server, &marks).await;
        tokio::select! {
            answer = early.acquire(&waiter) => panic!("it is held: {answer:?}"),
            () = until("in line", || async { keys(server, &line).await.len() == 2 }) => {}
        }
        let mut marks = keys(server, &marks).await;
        marks.retain(|mark| !others.contains(mark));
        let mark = marks.remove(0);
        // The key of the tombstone, with a value behind it. A client that makes an entry writes
        // this key, too, but it also reads the queue.
        let (writes, enters) = (format!("{mark}\u{12}"), format!("{line}r/\u{12}"));
        leak.lose(move |request| request.contains(&writes) && !request.contains(&enters));
        let issuer = Issuer::new("test").unwrap();
        Self {
            server,
            line,
            early,
            late,
            leak,
            mark,
            holder: Sequencer::new(issuer, named("r"), grant.token, holder.attempt.holder),
            waiter,
        }
    }

    async fn until_lost(&self, number: usize) {
        until("lost", || async { self.leak.lost() >= number }).await;
    }

    async fn end_holder(&self) {
        let released = self.early.release(&self.holder, true).await.unwrap();
        assert_eq!(released, Released::Released);
    }

    async fn granted(&self) {
        let answer = timeout(PATIENCE, self.late.acquire(&self.waiter)).await;
        let answer = answer.expect("its turn").unwrap();
        answer.granted().expect("it waits for ever");
    }
}

/// Each look tries to move the tombstone. The waiter is kept alive in the meantime.
#[tokio::test]
async fn a_waiter_keeps_its_place_while_its_mark_cannot_be_moved() {
    let due = Due::new(Ttl::secs(3)).await;
    let places = keys(due.server, &due.line).await;
    let end = async {
        due.until_lost(3).await;
        assert_eq!(keys(due.server, &due.line).await, places);
        due.end_holder().await;
    };
    tokio::join!(due.granted(), end);
}

/// The first request to move the tombstone is lost. Before the second, another attempt joins the
/// place, so the second request fails, too.
#[tokio::test]
async fn a_mark_that_was_not_moved_is_moved_later() {
    let due = Due::new(Ttl::secs(6)).await;
    let mut another = due.waiter.clone();
    another.attempt = AttemptRef::new(&TokioRuntime, named("r"), due.waiter.attempt.holder);
    let end = async {
        due.until_lost(1).await;
        let id = another.attempt.id.to_string();
        let joined = until("joined", || async {
            let places = ["get", "--prefix", "--print-value-only", &due.line];
            due.server.ctl(&places).await.contains(&id)
        });
        tokio::select! {
            answer = due.early.acquire(&another) => panic!("it is held: {answer:?}"),
            () = joined => due.leak.let_go(),
        }
        let moved = until("it was moved", || async {
            let mark = ["get", &due.mark, "--write-out=json"];
            due.server.ctl(&mark).await.contains(r#""version":2"#)
        });
        timeout(SOON, moved).await.expect("it is where it was");
        due.end_holder().await;
    };
    tokio::join!(due.granted(), end);
}

#[tokio::test]
async fn a_released_guard_leaves_no_tombstone_unless_its_holder_was_given() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let tombstones = format!("{prefix}/tombstone/");
    for renewed in [true, false] {
        let guard = locks.acquire("r").renew(renewed).await.unwrap();
        // Another process that shares the lease would ask with the same holder.
        assert_eq!(keys(server, &tombstones).await.is_empty(), renewed);
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        assert_eq!(keys(server, &tombstones).await.len(), 0, "{renewed}");
    }

    let given = locks.acquire("r").holder(Holder::random()).await.unwrap();
    assert_eq!(given.release().await.unwrap(), Released::Released);
    assert_eq!(keys(server, &tombstones).await.len(), 1);
}
