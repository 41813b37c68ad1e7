//! A login in the URL.

use e2e::servers::zookeeper;
use lock_core::{ErrorKind, LockManager, Ttl};
use zookeeper_client::Client;

use crate::world::{Namespace, nodes};

const TTL: Ttl = Ttl::secs(15);

impl Namespace<'_> {
    async fn with_login(&self, login: &str) -> LockManager {
        let url = self.url(30_000);
        let url = url.replace("zookeeper://", &format!("zookeeper://{login}@"));
        palisade::connect(&url).prefix(&self.prefix).await.unwrap()
    }
}

/// Only the user of a client can use its nodes. A client without a login, or with another login,
/// gets an error.
#[tokio::test]
async fn a_login_keeps_others_out() {
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.with_login("anna:p%40ss").await;
    let held = locks.acquire("r").ttl(TTL).await.unwrap();

    let (without, wrong) = (
        namespace.connect().await,
        namespace.with_login("anna:other").await,
    );
    for others in [without, wrong] {
        let error = others.acquire("r").ttl(TTL).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("user and password"), "{text}");
        assert!(!text.contains("other"), "{text}");
        let error = others.inspect("r").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    let observer = namespace.observer().await;
    let seen = observer.list_children(&namespace.directory("r")).await;
    assert_eq!(seen.unwrap_err(), zookeeper_client::Error::NoAuth);

    // Another process with the same login waits in the same queue.
    let same = namespace.with_login("anna:p%40ss").await;
    let look = same.acquire("r").ttl(TTL).try_acquire().await.unwrap();
    assert!(look.granted().is_none());
    let waiter = tokio::spawn(async move { same.acquire("r").ttl(TTL).await.unwrap() });
    crate::world::until_waiting(&locks, "r", 1).await;
    let last = held.token();
    held.release().await.unwrap();
    let next = waiter.await.unwrap();
    assert!(next.token() > last);
    next.release().await.unwrap();

    let anna = Client::connector().with_auth("digest", b"anna:p@ss");
    let anna = anna.connect(&namespace.servers()).await.unwrap();
    assert!(nodes(&anna, &namespace.directory("r")).await.is_empty());
}
