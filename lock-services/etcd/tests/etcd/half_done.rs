//! Changes of which only a part was made, or that were made without an answer.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, EtcdUser, until},
};
use lock_core::{
    Error, ErrorKind, Holder, Issuer, Outcome, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackend, LockBackendExt, TokioRuntime, Wait},
};
use palisade_etcd::EtcdBackend;

use crate::world::{backend, keys, named, prefix};

/// A client that sends a change twice. From the answer to the second copy it learns only that
/// something has changed. The first copy has changed it. After that answer the client cannot even
/// look.
struct Twice<'a> {
    server: &'a Etcd,
    prefix: &'a str,
    /// The node that is asked first, and the next one.
    nodes: [Proxy; 2],
    backend: EtcdBackend,
}

impl<'a> Twice<'a> {
    async fn connect(server: &'a Etcd, user: &EtcdUser, prefix: &'a str) -> Self {
        let nodes = [
            Proxy::start(&server.url()).await,
            Proxy::start(&server.url()).await,
        ];
        let [first, second] = [&nodes[0], &nodes[1]].map(|proxy| proxy.url("etcd"));
        let both = format!(
            "{},{}",
            &first["etcd://".len()..],
            &second["etcd://".len()..]
        );
        let url = server.url_of(user).replace(server.addresses()[0], &both);
        Self {
            backend: backend(&url, prefix).await,
            server,
            prefix,
            nodes,
        }
    }

    /// The client's error for a change whose request contains this text.
    async fn told<F>(&self, write: &str, change: F) -> Error
    where
        F: AsyncFnOnce(&EtcdBackend) -> Error,
    {
        let [one, other] = &self.nodes;
        let lost = one.at_request(write, Fault::DropReplies);
        let held = other.at_request(write, Fault::HoldReplies);
        let deny = async {
            until("it is sent again", || async { held.has_sprung() }).await;
            let denied = [
                "role",
                "revoke-permission",
                "--prefix=true",
                "locking",
                self.prefix,
            ];
            self.server.ctl(&denied).await;
            other.let_go();
        };
        let (error, ()) = tokio::join!(change(&self.backend), deny);
        assert!(lost.has_sprung());
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        error
    }
}

const TTL: Ttl = Ttl::secs(600);

/// A lease that this client has acquired.
async fn lease_of<'a>(twice: &Twice<'a>) -> (AcquireRequest, Sequencer) {
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let held = AcquireRequest::new(attempt, TTL);
    let answer = twice.backend.acquire(&held).await.unwrap();
    let token = answer.granted().expect("it is free").token;
    let issuer = Issuer::new("test").unwrap();
    let lease = Sequencer::new(issuer, named("r"), token, held.attempt.holder);
    (held, lease)
}

#[tokio::test]
async fn a_release_of_a_hold_that_was_sent_twice_does_not_say_that_nothing_has_changed() {
    for is_cancel in [false, true] {
        let (mut server, prefix) = (Etcd::start().await, prefix());
        let user = server.ask_for_login(&prefix).await;
        let twice = Twice::connect(&server, &user, &prefix).await;
        let (held, lease) = lease_of(&twice).await;
        // The key of the tombstone, with a value behind it.
        let mark = keys(&server, &format!("{prefix}/tombstone/"))
            .await
            .remove(0);
        let give_back = async |backend: &EtcdBackend| {
            if is_cancel {
                backend.cancel(&held.attempt).await.unwrap_err()
            } else {
                let released = backend.release_hold(&lease, held.attempt.id).await;
                released.unwrap_err()
            }
        };
        let error = twice.told(&format!("{mark}\u{12}"), give_back).await;
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        let places = keys(&server, &format!("{prefix}/lock/")).await;
        assert!(places.is_empty(), "{places:?}");
    }
}

/// Another attempt of a holder, which relies on its lease.
#[tokio::test]
async fn a_join_that_was_sent_twice_does_not_say_that_nothing_has_changed() {
    let (mut server, prefix) = (Etcd::start().await, prefix());
    let user = server.ask_for_login(&prefix).await;
    let twice = Twice::connect(&server, &user, &prefix).await;
    let (held, _) = lease_of(&twice).await;
    let mut joins = held.clone();
    joins.attempt = AttemptRef::new(&TokioRuntime, named("r"), held.attempt.holder);
    // The attempt does not give up while the change is denied. Denying takes a process of its own.
    joins.wait = Wait::Forever;
    let join = async |backend: &EtcdBackend| backend.acquire(&joins).await.unwrap_err();
    // An attempt that joins writes both attempts.
    let error = twice.told(&held.attempt.id.to_string(), join).await;
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    let place = ["get", "--prefix", "--print-value-only", &prefix];
    let place = server.ctl(&place).await;
    assert!(place.contains(&joins.attempt.id.to_string()), "{place}");
}
