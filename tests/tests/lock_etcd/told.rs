//! Whoever was told that it is the first does not look.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{etcd, until},
};
use lock_core::{
    AcquireRequest, AttemptRef, FencingToken, Holder, Issuer, LockBackend, Released, Sequencer,
    Ttl, Upkeep, Wait,
};
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, named, prefix};

const TTL: Ttl = Ttl::secs(600);

fn sequencer(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let issuer = Issuer::new("test").unwrap();
    Sequencer::new(issuer, named("r"), token, request.attempt.holder)
}

/// Its looks are held up. The control is a waiter that looks: the one whose lease nobody renews.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_next_in_line_is_granted_without_a_look() {
    let (server, prefix) = (etcd().await, prefix());
    let direct = backend(&server.url(), &prefix).await;
    let line = format!("{prefix}/lock/");
    for upkeep in [Upkeep::Watchdog, Upkeep::None] {
        let proxy = Proxy::start(&server.url()).await;
        let behind = backend(&proxy.url("etcd"), &prefix).await;
        let attempt = || AttemptRef::new(named("r"), Holder::random());
        let holder = AcquireRequest::new(attempt(), TTL);
        let token = direct.acquire(&holder).await.unwrap().granted();
        let lease = sequencer(&holder, token.unwrap().token);
        let mut waiter = AcquireRequest::new(attempt(), TTL);
        (waiter.wait, waiter.upkeep) = (Wait::Forever, upkeep);
        let release = async {
            until("in line", || async { keys(server, &line).await.len() == 2 }).await;
            // A look asks for the line, a watch for keys of it.
            let look = proxy.at_request("/lock/r/\u{12}", Fault::HoldRequests);
            assert_eq!(direct.release(&lease).await.unwrap(), Released::Released);
            if upkeep == Upkeep::None {
                until("it looks", async || look.has_sprung()).await;
                proxy.let_go();
            }
            look
        };
        let (answer, look) = tokio::join!(timeout(PATIENCE, behind.acquire(&waiter)), release);
        let token = answer.expect("its turn").unwrap().granted().unwrap().token;
        assert_eq!(look.has_sprung(), upkeep == Upkeep::None);
        assert!(token > lease.token());
        let given_back = direct.release(&sequencer(&waiter, token)).await;
        assert_eq!(given_back.unwrap(), Released::Released);
    }
}
