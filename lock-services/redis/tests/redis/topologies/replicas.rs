//! Grants that count only when replicas have them.

use std::time::Duration;

use e2e::servers::{Redis, until};
use lock_core::{Error, ErrorKind, LockManager, Outcome, ResourceName, Ttl};

const WITHIN: Duration = Duration::from_secs(1);

/// The time limit for an event that has to come.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_grant_that_replicas_did_not_get_is_given_back() {
    let (primary, replica) = pair().await;
    let careful = careful(primary.url()).await.unwrap();
    let careless = palisade::connect(primary.url()).await.unwrap();
    let hour = Ttl::secs(3600);
    let _kept = careful.acquire("kept").ttl(hour).await.unwrap();
    replica.pause().await;
    let _cut: u32 = primary
        .command(&["CLIENT", "KILL", "TYPE", "replica"])
        .await;

    let error = careful.acquire("refused").ttl(hour).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewReplicas, "{error:?}");
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
    assert!(
        !is_held(&careless, "refused").await,
        "it was not given back"
    );

    // The control: a failover after a grant that did not wait for replicas.
    let _lost = careless.acquire("lost").ttl(hour).await.unwrap();
    primary.kill().await;
    replica.resume().await;
    let () = replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    let successor = palisade::connect(replica.url()).await.unwrap();
    assert!(is_held(&successor, "kept").await);
    assert!(!is_held(&successor, "lost").await, "nothing was lost");
}

#[tokio::test]
async fn a_pushed_grant_is_returned_when_replicas_have_it() {
    let (primary, replica) = pair().await;
    let holder = careful(primary.url()).await.unwrap();
    let waiter = careful(primary.url()).await.unwrap();
    replicas_have_what_is_handed_on(holder, waiter, &replica).await;
}

/// Catches: a grant in the answer to a release, which replicas need not have by then.
#[tokio::test]
async fn a_grant_within_one_client_is_returned_when_replicas_have_it() {
    let (primary, replica) = pair().await;
    let client = careful(primary.url()).await.unwrap();
    replicas_have_what_is_handed_on(client.clone(), client, &replica).await;
}

async fn replicas_have_what_is_handed_on(
    mut holder: LockManager,
    mut waiter: LockManager,
    replica: &Redis,
) {
    let mut held = holder.acquire("r").await.unwrap();
    for _ in 0..20 {
        let waiting = waiter.clone();
        let waiting = tokio::spawn(async move { waiting.acquire("r").await.unwrap() });
        let resource = ResourceName::new("r").unwrap();
        until("in line", || async {
            holder.inspect(&resource).await.unwrap().waiters == Some(1)
        })
        .await;
        held.release().await.unwrap();
        held = waiting.await.unwrap();
        std::mem::swap(&mut holder, &mut waiter);
        let keys: Vec<String> = replica.command(&["KEYS", "*:lease:r"]).await;
        let lease: String = replica.command(&["GET", &keys[0]]).await;
        let token = held.token();
        assert!(
            lease.starts_with(&format!("{token}:")),
            "{lease} for {token}"
        );
        assert!(lease.contains(":f:"), "{lease} is provisional");
    }
}

#[tokio::test]
async fn a_user_who_may_not_wait_for_replicas_gets_an_error_when_connecting() {
    let server = Redis::start().await;
    let url = server.allow_documented("").await;
    let error = careful(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("WAIT"), "{error}");
    let url = server.allow_documented("+wait").await;
    let error = careful(&url).await.unwrap().acquire("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewReplicas, "{error:?}");
}

#[tokio::test]
async fn an_acquire_that_is_kept_and_not_polled_while_replicas_are_waited_for_delays_no_other() {
    let (primary, replica) = pair().await;
    // The time for replicas is longer than the test.
    let careful = careful_for(primary.url(), 2 * SOON, 3 * SOON)
        .await
        .unwrap();
    replica.pause().await;
    let mut kept = Box::pin(careful.acquire("kept").ttl(Ttl::secs(3600)).into_future());
    let replicas_are_waited_for = until("replicas are waited for", || async {
        let info: String = primary.command(&["INFO", "clients"]).await;
        info.contains("blocked_clients:1")
    });
    tokio::select! {
        _ = &mut kept => panic!("no replica has it"),
        () = replicas_are_waited_for => {}
    }
    replica.resume().await;
    let other = tokio::time::timeout(SOON, careful.acquire("other")).await;
    let _other = other.expect("it waits for no other server").unwrap();
    let _kept = kept.await.unwrap();
}

/// A primary, and a replica that is in step.
async fn pair() -> (Redis, Redis) {
    let primary = Redis::start_with(&["--repl-diskless-sync-delay", "0"]).await;
    let replica = Redis::start().await;
    let () = replica
        .command(&["REPLICAOF", "127.0.0.1", primary.port()])
        .await;
    until("the replica is in step", || async {
        let info: String = replica.command(&["INFO", "replication"]).await;
        info.contains("master_link_status:up")
    })
    .await;
    (primary, replica)
}

async fn careful(url: &str) -> Result<LockManager, Error> {
    careful_for(url, WITHIN, 2 * WITHIN).await
}

async fn careful_for(
    url: &str,
    within: Duration,
    response_timeout: Duration,
) -> Result<LockManager, Error> {
    let url = format!("{url}?replicas=1&replicas_ms={}", within.as_millis());
    palisade::connect(url)
        .response_timeout(response_timeout)
        .await
}

async fn is_held(locks: &LockManager, resource: &str) -> bool {
    let resource = ResourceName::new(resource).unwrap();
    locks.inspect(&resource).await.unwrap().holder.is_some()
}
