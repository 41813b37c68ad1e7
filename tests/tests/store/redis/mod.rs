//! Values in Redis that only the grant which the mark shows may change.

mod http;
mod sent_again;

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::{self, Redis, RedisCluster, redis},
};
use fenced_store::{FenceError, FencedRedis, Plausibility, Swap};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use redis::{AsyncCommands, Client, aio::MultiplexedConnection};

type Store = FencedRedis<MultiplexedConnection>;

async fn connection(url: &str) -> MultiplexedConnection {
    let client = Client::open(url).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// A store with keys of its own on the shared server.
async fn fresh() -> Store {
    let store = FencedRedis::new(connection(redis().await.url()).await);
    store.prefix(&Holder::random().fingerprint())
}

fn grant(number: u64) -> Sequencer {
    grant_of("redis", "account:42", number)
}

fn grant_of(issuer: &str, resource: &str, number: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new(issuer).unwrap(),
        ResourceName::new(resource).unwrap(),
        FencingToken::new(number).unwrap(),
        Holder::random(),
    )
}

/// The value of account 42, as anybody may read it.
async fn value(store: &Store) -> Option<String> {
    let key = store.value_key("account:42").unwrap();
    let mut connection = connection(redis().await.url()).await;
    connection.get(key).await.unwrap()
}

async fn high_water(store: &Store) -> Option<u64> {
    let resource = ResourceName::new("account:42").unwrap();
    let mark = store.high_water(&resource).await.unwrap();
    mark.map(|mark| mark.token().get())
}

#[tokio::test]
async fn a_stale_writer_of_redis_is_refused() {
    let store = fresh().await;
    let (old, new) = (grant(33), grant(34));
    store.claim(&old).await.unwrap();
    let receipt = store.set(&old, "100", None).await.unwrap();
    assert_eq!(
        (receipt.resource(), receipt.token()),
        (old.resource(), old.token())
    );
    let seen = store.get(&old).await.unwrap().unwrap();

    store.claim(&new).await.unwrap();
    assert_eq!(store.get(&new).await.unwrap().unwrap(), b"100");
    store.set(&new, "90", None).await.unwrap();
    let refusals = [
        store.set(&old, &seen, None).await.unwrap_err(),
        store.delete(&old).await.unwrap_err(),
        store
            .swap(&old, Some(b"90"), Some(b"80"), None)
            .await
            .unwrap_err(),
        store.get(&old).await.unwrap_err(),
        store.claim(&old).await.unwrap_err(),
    ];
    for error in refusals {
        match &error {
            FenceError::Stale {
                presented,
                high_water,
                ..
            } => {
                assert_eq!((presented.get(), high_water.get()), (33, 34));
            }
            other => panic!("{other:?}"),
        }
        assert!(error.is_fenced());
    }
    assert_eq!(value(&store).await.unwrap(), "90");

    // The control: the same late write, unfenced.
    let key = store.value_key("account:42").unwrap();
    let mut unfenced = connection(redis().await.url()).await;
    let () = unfenced.set(key, &seen).await.unwrap();
    assert_eq!(
        value(&store).await.unwrap(),
        "100",
        "the newer holder's write is lost"
    );
}

#[tokio::test]
async fn other_grants_are_refused_by_redis() {
    let store = fresh().await;
    let ours = grant(33);
    assert!(matches!(
        store.set(&ours, "1", None).await,
        Err(FenceError::NotClaimed { .. })
    ));
    assert_eq!(high_water(&store).await, None);
    store.claim(&ours).await.unwrap();
    store.set(&ours, "1", None).await.unwrap();

    let (twin, early) = (grant(33), grant(34));
    let foreign = grant_of("etcd", "account:42", 900);
    let same = Sequencer::new(
        foreign.issuer().clone(),
        ours.resource().clone(),
        ours.token(),
        ours.holder(),
    );
    for claimed in [
        store.claim(&twin).await,
        store.set(&twin, "2", None).await.map(drop),
    ] {
        assert!(
            matches!(claimed, Err(FenceError::DuplicateToken { .. })),
            "{claimed:?}"
        );
    }
    let unclaimed = store.set(&early, "2", None).await;
    assert!(
        matches!(unclaimed, Err(FenceError::NotClaimed { .. })),
        "{unclaimed:?}"
    );
    for refused in [
        store.claim(&foreign).await,
        store.set(&foreign, "2", None).await.map(drop),
        store.claim(&same).await,
        store.delete(&same).await.map(drop),
    ] {
        match refused.unwrap_err() {
            FenceError::WrongIssuer {
                presented, current, ..
            } => {
                assert_eq!((presented.as_str(), current.as_str()), ("etcd", "redis"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(high_water(&store).await, Some(33));
    assert_eq!(value(&store).await.unwrap(), "1");
    store.set(&ours, "3", None).await.unwrap();
}

#[tokio::test]
async fn a_claim_in_redis_never_lowers_the_mark() {
    let store = fresh().await;
    let (low, high) = (grant(33), grant(40));
    store.claim(&high).await.unwrap();
    store.claim(&high).await.unwrap();
    store.claim(&low).await.unwrap_err();
    assert_eq!(high_water(&store).await, Some(40));
    let greatest = grant(FencingToken::MAX.get());
    let mistaken = store.claim(&greatest).await;
    assert!(
        matches!(mistaken, Err(FenceError::Implausible { .. })),
        "{mistaken:?}"
    );
    assert_eq!(high_water(&store).await, Some(40));
    // Every digit of it counts.
    let trusting = store.clone().plausibility(Plausibility::unchecked());
    let last_but_one = grant(FencingToken::MAX.get() - 1);
    trusting.claim(&last_but_one).await.unwrap();
    trusting.claim(&greatest).await.unwrap();
    assert!(matches!(
        store.get(&last_but_one).await,
        Err(FenceError::Stale { .. })
    ));
}

#[tokio::test]
async fn a_deleted_value_keeps_its_mark() {
    let store = fresh().await;
    let (old, new) = (grant(33), grant(34));
    store.claim(&old).await.unwrap();
    store.set(&old, "1", None).await.unwrap();
    store.claim(&new).await.unwrap();
    store.delete(&new).await.unwrap();
    assert_eq!(store.get(&new).await.unwrap(), None);
    let resurrected = store.set(&old, "1", None).await;
    assert!(
        matches!(resurrected, Err(FenceError::Stale { .. })),
        "{resurrected:?}"
    );
    assert_eq!(value(&store).await, None);
    store.set(&new, "2", None).await.unwrap();
}

#[tokio::test]
async fn a_value_that_ran_out_keeps_its_mark() {
    let store = fresh().await;
    let (old, new) = (grant(33), grant(34));
    store.claim(&old).await.unwrap();
    store.claim(&new).await.unwrap();
    store
        .set(&new, "1", Some(Duration::from_nanos(1)))
        .await
        .unwrap();
    servers::until("the value ran out", async || value(&store).await.is_none()).await;
    assert_eq!(high_water(&store).await, Some(34));
    assert!(store.set(&old, "0", None).await.unwrap_err().is_fenced());

    let mut plain = connection(redis().await.url()).await;
    let key = store.value_key("account:42").unwrap();
    store
        .set(&new, "2", Some(Duration::from_secs(100)))
        .await
        .unwrap();
    let left: i64 = plain.pttl(&key).await.unwrap();
    assert!((1..=100_000).contains(&left), "{left}");
    store.set(&new, "3", None).await.unwrap();
    assert_eq!(
        plain.pttl::<_, i64>(&key).await.unwrap(),
        -1,
        "it stays for good"
    );
    let mark = key.replace(":value", ":mark");
    assert_eq!(plain.pttl::<_, i64>(&mark).await.unwrap(), -1);
}

#[tokio::test]
async fn a_swap_compares_under_the_fence() {
    let store = fresh().await;
    let ours = grant(33);
    store.claim(&ours).await.unwrap();
    let done = |swap: Swap| matches!(swap, Swap::Done(_));
    let swap = async |old: Option<&str>, new: Option<&str>| {
        let (old, new) = (old.map(str::as_bytes), new.map(str::as_bytes));
        store.swap(&ours, old, new, None).await.unwrap()
    };
    assert_eq!(swap(Some("1"), Some("2")).await, Swap::Found(None));
    assert!(
        done(swap(None, Some("")).await),
        "an empty value is a value"
    );
    assert_eq!(swap(None, Some("2")).await, Swap::Found(Some(Vec::new())));
    assert_eq!(swap(Some("1"), None).await, Swap::Found(Some(Vec::new())));
    assert!(done(swap(Some(""), Some("a\0ä")).await));
    assert_eq!(value(&store).await.unwrap(), "a\0ä");
    assert!(done(swap(Some("a\0ä"), None).await));
    assert_eq!(value(&store).await, None);
}

/// What a resource is called is no pattern, no script, and no other resource's key.
#[tokio::test]
async fn hostile_names_are_names_in_redis() {
    let store = fresh().await;
    let names = [
        "{", "}", "{}", "a}b", "{a}", "*", "[a]", "'..'", "%7Ba%7D", "KEYS[1]", "a:mark",
    ];
    for name in names {
        let (old, new) = (grant_of("redis", name, 1), grant_of("redis", name, 2));
        store.claim(&old).await.unwrap();
        store.set(&old, name, None).await.unwrap();
        store.claim(&new).await.unwrap();
        assert!(store.delete(&old).await.unwrap_err().is_fenced());
    }
    for name in names {
        let newer = grant_of("redis", name, 3);
        store.claim(&newer).await.unwrap();
        assert_eq!(store.get(&newer).await.unwrap().unwrap(), name.as_bytes());
    }
}

#[tokio::test]
async fn no_secret_reaches_redis() {
    let server = Redis::start().await;
    let store = FencedRedis::new(connection(server.url()).await);
    let ours = grant(33);
    store.claim(&ours).await.unwrap();
    store.set(&ours, "1", None).await.unwrap();
    let error = store.claim(&grant(33)).await.unwrap_err();
    let mark: Vec<String> = server
        .command(&["HGETALL", "fenced:{account:42}:mark"])
        .await;
    assert!(mark.contains(&ours.holder().digest()));
    for text in [
        format!("{mark:?}"),
        format!("{error} {error:?}"),
        format!("{store:?}"),
    ] {
        assert!(!text.contains(&ours.holder().expose()), "{text}");
    }
}

/// Its request is held up, and served after its client has given up on it.
#[tokio::test]
async fn a_write_to_redis_without_an_answer_is_unknown() {
    let server = Redis::start().await;
    let proxy = Proxy::start(server.url()).await;
    let direct = FencedRedis::new(connection(server.url()).await);
    let store = FencedRedis::new(connection(&proxy.url("redis")).await);
    let (old, new) = (grant(33), grant(34));
    store.claim(&old).await.unwrap();
    store.set(&old, "1", None).await.unwrap();
    let lost = proxy.at_reply_to("EVALSHA", Fault::Cut);
    let error = store.set(&old, "2", None).await.unwrap_err();
    assert!(lost.has_sprung());
    assert!(
        matches!(error, FenceError::CommitUnknown { .. }),
        "{error:?}"
    );
    assert!(!error.is_retryable() && !error.is_fenced());
    // It was written; it might not have been. A newer claim ends the doubt.
    direct.claim(&new).await.unwrap();
    assert_eq!(direct.get(&new).await.unwrap().unwrap(), b"2");
}

#[tokio::test]
async fn a_server_that_is_gone_is_no_doubt_about_a_read() {
    let server = Redis::start().await;
    let store = FencedRedis::new(connection(server.url()).await);
    let ours = grant(33);
    store.claim(&ours).await.unwrap();
    server.kill().await;
    let error = store.get(&ours).await.unwrap_err();
    assert!(matches!(error, FenceError::Db { .. }), "{error:?}");
}

/// Mark and value of a resource are in one slot, so that a script may touch both.
#[tokio::test]
async fn a_cluster_serves_fenced_values() {
    let cluster = RedisCluster::start().await;
    for number in 0..20 {
        let resource = format!("account:{{{number}}}");
        let ours = grant_of("redis", &resource, 33);
        let mut served = 0;
        for node in cluster.primaries() {
            let store = FencedRedis::new(connection(node.url()).await);
            match store.claim(&ours).await {
                Ok(()) => {
                    store.set(&ours, "1", None).await.unwrap();
                    served += 1;
                }
                Err(error) => assert!(format!("{error:?}").contains("Moved"), "{error:?}"),
            }
        }
        assert_eq!(served, 1, "{resource}");
    }
}
