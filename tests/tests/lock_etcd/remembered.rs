//! What is remembered of leases costs no lease, and no renewal waits for it.

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, etcd, until},
};
use futures_util::future::join_all;
use lock_core::{
    AcquireRequest, AttemptRef, Clock, Holder, Issuer, LockBackend, RenewRequest, Renewed,
    Sequencer, SystemClock, Ttl, etcd::EtcdBackend,
};

use crate::world::{backend, named, prefix};

const TTL: Ttl = Ttl::secs(20);
/// As many as are renewed together.
const MANY: usize = 100;

/// Leases of as many resources, acquired at the same time.
async fn acquired(backend: &EtcdBackend) -> Vec<RenewRequest> {
    let issuer = Issuer::new("test").unwrap();
    let acquired = (0..MANY).map(async |number| {
        let resource = named(&format!("r{number}"));
        let attempt = AttemptRef::new(resource.clone(), Holder::random());
        let holder = attempt.holder;
        let answer = backend.acquire(&AcquireRequest::new(attempt, TTL)).await;
        let token = answer.unwrap().granted().unwrap().token;
        let lease = Sequencer::new(issuer.clone(), resource, token, holder);
        RenewRequest::new(lease, TTL)
    });
    join_all(acquired).await
}

/// A client that takes leases over knows nothing of what their marks hang on: it hangs all of them
/// elsewhere. Every request takes a while, and before there is an answer to as many of them as
/// there are leases all of those would have run out.
#[tokio::test]
async fn leases_whose_marks_are_due_at_the_same_time_are_renewed_first() {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let (one, other) = (
        backend(&server.url(), &prefix).await,
        backend(&proxy.url("etcd"), &prefix).await,
    );
    let leases = acquired(&one).await;
    proxy.inflict(Fault::Delay(Duration::from_millis(80)));
    let renewed = other.renew(&leases).await;
    let now = SystemClock.now();
    for renewed in renewed {
        match renewed {
            Ok(Renewed::Renewed(lease)) => assert!(lease.deadline() > now, "lost"),
            other => panic!("{other:?}"),
        }
    }
    proxy.let_go();
    until("every mark hangs on another lease", || async {
        let marks = format!("{prefix}/mark/");
        let marks = server
            .ctl(&["get", "--prefix", &marks, "--write-out=json"])
            .await;
        marks.matches(r#""version":2"#).count() == MANY
    })
    .await;
}

/// Each of them asks for it before there is an answer to the first.
#[tokio::test]
async fn acquisitions_at_the_same_time_are_remembered_on_one_lease() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    assert_eq!(acquired(&backend).await.len(), MANY);
    let leases = server.ctl(&["lease", "list"]).await;
    let expected = format!("found {} leases", MANY + 1);
    assert!(leases.starts_with(&expected), "{leases}");
}
