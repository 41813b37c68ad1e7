//! A release by force whose answer is lost.

use e2e::{
    proxy::{Fault, Proxy},
    servers::etcd,
};
use lock_core::{
    Attempt, Holder, Ttl,
    backend::{AcquireRequest, AttemptRef, Forced, LockBackend, LockBackendExt, TokioRuntime},
};

use crate::world::{backend, keys, named, prefix};

const TTL: Ttl = Ttl::secs(600);

fn request() -> AcquireRequest {
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, named("r"), Holder::random()),
        TTL,
    )
}

/// The node ends the lease, and does not answer any more. The next node is asked to end a lease
/// that is not there.
#[tokio::test]
async fn an_end_by_force_whose_answer_was_lost_is_reported_as_an_end() {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let both = format!("{},{}", proxy.url("etcd"), server.addresses()[0]);
    let (holder, operator) = (
        backend(&server.url(), &prefix).await,
        backend(&both, &prefix).await,
    );
    let grant = holder.acquire(&request()).await.unwrap().granted().unwrap();
    let place = keys(server, &format!("{prefix}/lock/")).await.remove(0);
    let lost = proxy.at_request(&place, Fault::DropReplies);
    let forced = operator.force_release(&named("r"), grant.token).await;
    assert!(lost.has_sprung());
    let Ok(Forced::Ended { revocation }) = forced else {
        panic!("it was ended, and the answer is another one: {forced:?}");
    };
    assert!(revocation > grant.token);
    let next = holder.acquire(&request()).await.unwrap();
    let Attempt::Granted(next) = next else {
        panic!("it is free: {next:?}");
    };
    assert!(next.token > revocation);

    let again = operator.force_release(&named("r"), grant.token).await;
    assert!(matches!(again, Ok(Forced::NotHeld)), "{again:?}");
}
