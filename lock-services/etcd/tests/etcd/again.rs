//! Requests that are sent again, and other attempts of the same holder, find the state that the
//! first request has left.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, etcd, until},
};
use lock_core::{
    Attempt, ErrorKind, FencingToken, Holder, Issuer, Released, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptRef, Grant, LockBackend, LockBackendExt, TokioRuntime, Wait},
};
use palisade_etcd::EtcdBackend;
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, manager, named, prefix};

const TTL: Ttl = Ttl::secs(600);

fn request() -> AcquireRequest {
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, named("r"), Holder::random()),
        TTL,
    )
}

/// Another attempt of the same acquisition.
fn another(request: &AcquireRequest) -> AcquireRequest {
    let mut another = request.clone();
    another.attempt = AttemptRef::new(&TokioRuntime, named("r"), request.attempt.holder);
    another
}

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, named("r"), token, request.attempt.holder)
}

async fn granted(backend: &EtcdBackend, request: &AcquireRequest) -> Grant {
    let answer = timeout(PATIENCE, backend.acquire(request)).await;
    let answer = answer.expect("its turn").unwrap();
    answer.granted().expect("it is free")
}

async fn release(backend: &EtcdBackend, request: &AcquireRequest, token: FencingToken) {
    let released = backend.release(&sequencer(request, token), true).await;
    assert_eq!(released.unwrap(), Released::Released);
}

/// A held resource, and two clients of it.
struct Contended {
    server: &'static Etcd,
    line: String,
    one: EtcdBackend,
    other: EtcdBackend,
    holder: AcquireRequest,
    token: FencingToken,
}

impl Contended {
    async fn new() -> Self {
        let (server, prefix) = (etcd().await, prefix());
        let (one, other) = (
            backend(&server.url(), &prefix).await,
            backend(&server.url(), &prefix).await,
        );
        let holder = request();
        let token = granted(&one, &holder).await.token;
        Self {
            server,
            line: format!("{prefix}/lock/"),
            one,
            other,
            holder,
            token,
        }
    }

    /// A floor above all tokens that were granted.
    fn floor(&self) -> Option<FencingToken> {
        FencingToken::new(self.token.get() + 1_000_000).ok()
    }

    async fn until_in_line(&self, number: usize) {
        until("in line", || async {
            keys(self.server, &self.line).await.len() == number
        })
        .await;
    }

    /// Takes a place in the queue behind the holder, and then goes away.
    async fn in_line_and_dropped(&self, request: &AcquireRequest) {
        tokio::select! {
            answer = self.one.acquire(request) => panic!("it is held: {answer:?}"),
            () = self.until_in_line(2) => {}
        }
    }

    /// Ends the holder's lease as soon as both attempts rely on the place behind it.
    async fn release_when_both_wait(&self, attempts: [&AcquireRequest; 2]) {
        until("both rely on it", || async {
            let values = ["get", "--prefix", "--print-value-only", &self.line];
            let places = self.server.ctl(&values).await;
            let named = attempts.map(|one| places.contains(&one.attempt.id.to_string()));
            named == [true; 2]
        })
        .await;
        self.release().await;
    }

    async fn release(&self) {
        release(&self.one, &self.holder, self.token).await;
    }
}

fn waiter() -> AcquireRequest {
    let mut waiter = request();
    waiter.wait = Wait::Forever;
    waiter
}

/// After an owner has given back its last hold, it gets another lease, with other names.
#[tokio::test]
async fn an_owner_that_came_back_gets_its_lease_again() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let first = request();
    for round in 1..=3 {
        let early = another(&first);
        let token = granted(&backend, &early).await.token;
        let late = another(&first);
        for same in [&early, &late, &late, &early] {
            assert_eq!(granted(&backend, same).await.token, token, "round {round}");
        }
        let lease = sequencer(&first, token);
        for hold in [&early, &late] {
            let given_back = backend.release_hold(&lease, hold.attempt.id).await;
            assert_eq!(given_back.unwrap(), Released::Released, "round {round}");
        }
        assert_eq!(
            keys(server, &format!("{prefix}/lock/")).await,
            Vec::<String>::new()
        );
    }
}

/// The first request has a place in the queue, but its client got no answer.
#[tokio::test]
async fn a_request_with_a_floor_that_is_sent_again_gets_no_token_below_it() {
    let contended = Contended::new().await;
    let mut raised = waiter();
    raised.floor = contended.floor();
    contended.in_line_and_dropped(&raised).await;
    contended.release().await;
    let token = granted(&contended.other, &raised).await.token;
    assert!(Some(token) >= raised.floor, "{token}");
    let again = granted(&contended.one, &raised).await.token;
    assert_eq!(again, token, "that is its token");
    release(&contended.one, &raised, token).await;
}

/// One of two attempts has a floor. The token that both share is not below it, and neither attempt
/// ends when the other has changed its place.
#[tokio::test]
async fn attempts_that_wait_together_get_one_token_above_the_floor_of_the_first() {
    let contended = Contended::new().await;
    let mut raised = waiter();
    let plain = another(&raised);
    raised.floor = contended.floor();
    contended.in_line_and_dropped(&raised).await;
    let (first, second, ()) = tokio::join!(
        granted(&contended.one, &raised),
        granted(&contended.other, &plain),
        contended.release_when_both_wait([&raised, &plain]),
    );
    assert_eq!(first.token, second.token);
    assert!(Some(first.token) >= raised.floor, "{}", first.token);
    release(&contended.one, &raised, first.token).await;
}

/// The attempt with the floor comes second, to a place that was made without a floor. A place that
/// was not granted yet has to be given back, because its token is too small for the second attempt.
#[tokio::test]
async fn an_attempt_with_a_floor_that_joins_a_waiting_one_gets_no_token_below_it() {
    let contended = Contended::new().await;
    let plain = waiter();
    let mut raised = another(&plain);
    raised.floor = contended.floor();
    let second = async {
        contended.until_in_line(2).await;
        granted(&contended.other, &raised).await
    };
    let (first, second, ()) = tokio::join!(
        granted(&contended.one, &plain),
        second,
        contended.release_when_both_wait([&raised, &plain]),
    );
    assert_eq!(first.token, second.token);
    assert!(Some(second.token) >= raised.floor, "{}", second.token);
    release(&contended.one, &raised, second.token).await;
}

/// A lease is held by all of its holder's attempts, with one token.
#[tokio::test]
async fn an_attempt_with_a_floor_that_joins_a_holder_gets_the_holders_token() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let plain = request();
    let token = granted(&backend, &plain).await.token;
    let mut raised = another(&plain);
    raised.floor = FencingToken::new(token.get() + 1_000_000).ok();
    assert_eq!(granted(&backend, &raised).await.token, token);
    release(&backend, &plain, token).await;
}

/// The number of leases in etcd, in the words of etcdctl.
async fn leases(server: &Etcd) -> String {
    let listed = server.ctl(&["lease", "list"]).await;
    listed.lines().next().unwrap().to_owned()
}

/// All looks use one lease, and the next acquisition uses it, too.
#[tokio::test]
async fn a_look_that_does_not_wait_leaves_no_lease_behind() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let (holds, looks) = (
        backend(&server.url(), &prefix).await,
        backend(&server.url(), &prefix).await,
    );
    let rival = request();
    let token = granted(&holds, &rival).await.token;
    for _ in 0..10 {
        let look = looks.acquire(&request()).await.unwrap();
        assert!(matches!(look, Attempt::Held { .. }), "{look:?}");
        // Each client has one more lease for its tombstones.
        assert_eq!(leases(&server).await, "found 4 leases");
    }
    release(&holds, &rival, token).await;
    let next = request();
    let token = granted(&looks, &next).await.token;
    assert_eq!(leases(&server).await, "found 4 leases");
    release(&looks, &next, token).await;
    drop(looks);
    until("it is given back", async || {
        leases(&server).await == "found 3 leases"
    })
    .await;
}

/// A node puts the attempt into the queue, and does not answer any more. The next node finds its
/// entry there. The attempt is refused nevertheless, because more waiters are before it than it
/// allows.
#[tokio::test]
async fn a_waiter_too_many_is_refused_although_the_answer_to_its_entry_was_lost() {
    let contended = Contended::new().await;
    let (server, line) = (contended.server, &contended.line);
    let (early, mut late) = (waiter(), waiter());
    contended.in_line_and_dropped(&early).await;
    let proxy = Proxy::start(&server.url()).await;
    let both = format!("{},{}", proxy.url("etcd"), server.addresses()[0]);
    let other = backend(&both, line.strip_suffix("/lock/").unwrap()).await;
    late.max_waiters = Some(1);
    let lost = proxy.at_request(line, Fault::DropReplies);
    let answer = timeout(PATIENCE, other.acquire(&late)).await;
    assert!(lost.has_sprung());
    let error = answer.expect("it does not wait").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull, "{error}");
    assert_eq!(keys(server, line).await.len(), 2);

    // As many waiters as it allows are before this attempt, so it goes on. An attempt that does not
    // wait also goes on, whatever it allows.
    let mut look = another(&early);
    (look.wait, look.max_waiters) = (Wait::Never, Some(0));
    let found = contended.one.acquire(&look).await.unwrap();
    assert!(matches!(found, Attempt::Held { .. }), "{found:?}");
    let mut again = another(&early);
    again.max_waiters = Some(1);
    let (grant, ()) = tokio::join!(
        granted(&contended.one, &again),
        contended.release_when_both_wait([&early, &again]),
    );
    release(&contended.one, &early, grant.token).await;
}

/// No other process knows the holder, so the release is a deletion, and etcd answers with the
/// number of deleted keys.
/// Catches: "not the holder" as the answer to a release that has ended the lease.
#[tokio::test]
async fn a_release_whose_answer_is_lost_is_a_release() {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let locks = manager(&proxy.url("etcd"), &prefix).await;
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let entries = format!("{prefix}/lock/");
    let lost = proxy.at_request(&entries, Fault::DropReplies);
    let broken = async {
        until("the release was served", async || {
            lost.has_sprung() && keys(server, &entries).await.is_empty()
        })
        .await;
        proxy.inflict(Fault::Reset);
        proxy.let_go();
    };
    let (released, ()) = tokio::join!(guard.release(), broken);
    assert_eq!(released.unwrap(), Released::Released);
}
