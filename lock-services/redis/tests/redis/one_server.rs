//! The Redis lock service against a real server, and against the failures of a server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use e2e::{
    observer::until,
    servers::{Redis, redis},
};
use lock_core::{
    Attempt, ErrorKind, FencingToken, Holder, Issuer, LockManager, Outcome, ResourceName,
    Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, LockBackend, LockBackendExt, Runtime,
        TokioRuntime,
    },
};
use palisade_redis::{QUEUE_TTL, RedisBackend};
use redis::{AsyncCommands, Client, aio::MultiplexedConnection};

use crate::faults::world::impatient;

/// A ttl that is longer than any test here. A lease that is gone during a test was given back.
const LONG: Ttl = Ttl::secs(600);

/// A manager on the shared server that sees nothing of the other tests.
struct World {
    locks: LockManager,
    prefix: String,
    commands: MultiplexedConnection,
}

async fn world() -> World {
    world_on(redis().await.url()).await
}

async fn world_on(url: &str) -> World {
    let prefix = format!("t{:016x}", rand::random::<u64>());
    let locks = palisade::connect(url).prefix(&prefix).await.unwrap();
    World {
        locks,
        prefix,
        commands: commands(url).await,
    }
}

async fn commands(url: &str) -> MultiplexedConnection {
    Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap()
}

impl World {
    async fn keys(&self, pattern: &str) -> Vec<String> {
        let pattern = format!("{}:{pattern}", self.prefix);
        self.commands.clone().keys(pattern).await.unwrap()
    }

    async fn is_free(&self, resource: &str) -> bool {
        let resource = ResourceName::new(resource).unwrap();
        self.locks
            .inspect(&resource)
            .await
            .unwrap()
            .holder
            .is_none()
    }

    /// Waits until a waiter is in the queue.
    async fn until_waited_for(&self, resource: &str) {
        let resource = ResourceName::new(resource).unwrap();
        until("waited for", async || {
            let inspection = self.locks.inspect(&resource).await.unwrap();
            inspection.waiters > Some(0)
        })
        .await;
    }

    async fn until_free(&self, resource: &str) {
        until("free", async || self.is_free(resource).await).await;
    }
}

#[tokio::test]
async fn tokens_rise_however_a_lease_ends() {
    let server = Redis::start().await;
    let mut world = world_on(server.url()).await;
    let mut tokens = Vec::new();

    let released = world.locks.acquire("r").await.unwrap();
    tokens.push(released.token());
    released.release().await.unwrap();

    let dropped = world.locks.acquire("r").await.unwrap();
    tokens.push(dropped.token());
    drop(dropped);

    let expiring = world
        .locks
        .acquire("r")
        .ttl(Ttl::millis(50))
        .renew(false)
        .await
        .unwrap();
    tokens.push(expiring.token());
    expiring.lost().await;

    let next = world.locks.acquire("r").await.unwrap();
    tokens.push(next.token());
    for code in ["SCRIPT", "FUNCTION"] {
        let mut flush = redis::cmd(code);
        let flush = flush.arg("FLUSH");
        let flushed: String = flush.query_async(&mut world.commands).await.unwrap();
        assert_eq!(flushed, "OK");
    }
    next.release().await.unwrap();
    tokens.push(world.locks.acquire("r").await.unwrap().token());
    assert!(
        tokens.is_sorted_by(|earlier, later| earlier < later),
        "{tokens:?}"
    );
}

#[tokio::test]
async fn a_server_gets_the_scripts_once_and_again_after_it_lost_them() {
    let server = Redis::start().await;
    let (world, other) = (world_on(server.url()).await, world_on(server.url()).await);
    let (first, second) = (world.locks, other.locks);
    first.acquire("r").await.unwrap().release().await.unwrap();
    let once = scripts_loaded(&server).await;
    assert!(once > 0, "they were not counted");
    for locks in [&first, &second] {
        locks.acquire("r").await.unwrap().release().await.unwrap();
    }
    assert_eq!(scripts_loaded(&server).await, once);

    let held = first.acquire("held").await.unwrap();
    let () = server.command(&["SCRIPT", "FLUSH"]).await;
    held.release().await.unwrap();
    first.acquire("r").await.unwrap().release().await.unwrap();
    assert_eq!(scripts_loaded(&server).await, 2 * once);
}

/// The number of times that clients have sent the text of a script.
async fn scripts_loaded(server: &Redis) -> u64 {
    let info: String = server.command(&["INFO", "commandstats"]).await;
    let counted = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_script|load:calls="));
    let calls = counted.and_then(|counted| counted.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn a_server_that_came_back_empty_goes_on_above_what_it_has_issued() {
    let server = Redis::start().await;
    let world = world_on(server.url()).await;
    let mut last = None;
    for _ in 0..3 {
        for _ in 0..50 {
            let guard = world.locks.acquire("r").await.unwrap();
            assert!(Some(guard.token()) > last);
            last = Some(guard.token());
            guard.release().await.unwrap();
        }
        server.restart_empty().await;
    }
    // A process that did not exist before the loss.
    let newcomer = palisade::connect(server.url()).prefix(&world.prefix).await;
    assert!(Some(newcomer.unwrap().acquire("r").await.unwrap().token()) > last);
}

#[tokio::test]
async fn an_old_counter_that_comes_back_is_lifted_by_the_first_acquire_of_a_connection() {
    let server = Redis::start().await;
    let world = world_on(server.url()).await;
    let guard = world.locks.acquire("r").await.unwrap();
    let last = guard.token();
    guard.release().await.unwrap();
    // The state after a failover to a replica with old data.
    let counter = world.keys("*:counter").await.remove(0);
    server.restart_empty().await;
    let () = commands(server.url()).await.set(&counter, 7).await.unwrap();
    let next = world.locks.acquire("r").await.unwrap();
    assert!(next.token() > last, "{} after {last}", next.token());
}

/// Catches: a waiter that relies on a place in the queue which the server has forgotten.
#[tokio::test]
async fn a_waiter_sits_out_the_restart_of_the_server() {
    let server = Redis::start().await;
    let world = world_on(server.url()).await;
    let _held = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let locks = world.locks.clone();
    let waiter = tokio::spawn(async move { locks.acquire("r").await });
    world.until_waited_for("r").await;
    server.restart_empty().await;
    drop(waiter.await.unwrap().unwrap());
}

/// The drop itself sends the release, because a task that had to be woken for it would be late.
#[tokio::test]
async fn a_dropped_guard_is_released_before_its_task_asks_again() {
    let world = world().await;
    // The server knows the script from here on. To load a script, a client has to wait for the
    // answer.
    let guard = world.locks.acquire("r").await.unwrap();
    guard.release().await.unwrap();
    for _ in 0..100 {
        drop(world.locks.acquire("r").await.unwrap());
        let again = world.locks.try_acquire("r").await.unwrap();
        assert!(again.granted().is_some());
    }
}

#[tokio::test]
async fn waiters_are_woken_by_push() {
    const HANDOFFS: u32 = 20;
    let world = world().await;
    let started = TokioRuntime.now();
    let mut guard = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    for _ in 0..HANDOFFS {
        let locks = world.locks.clone();
        let waiter = tokio::spawn(async move { locks.acquire("r").ttl(Ttl::secs(60)).await });
        world.until_waited_for("r").await;
        guard.release().await.unwrap();
        guard = waiter.await.unwrap().unwrap();
    }
    // Polling alone would look after 300 ms.
    let took = TokioRuntime.now().since(started);
    assert!(
        took < Duration::from_millis(300) * HANDOFFS / 2,
        "{took:?} for {HANDOFFS} hand-offs"
    );
}

/// A pushed lease is short until its first renewal, but here that renewal would never be sent.
#[tokio::test]
async fn a_lease_that_is_kept_up_for_less_than_its_ttl_has_all_of_it_at_once() {
    let world = world().await;
    let first = world.locks.acquire("r").ttl(LONG).await.unwrap();
    let locks = world.locks.clone();
    let waiter = tokio::spawn(async move {
        let acquire = locks.acquire("r").ttl(LONG);
        acquire.max_hold(Duration::ZERO).await
    });
    world.until_waited_for("r").await;
    first.release().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    let least = LONG.get() / 2;
    assert!(guard.remaining().unwrap() > least, "{guard:?}");
    let seen = world.locks.inspect(guard.resource()).await.unwrap();
    assert!(seen.holder.as_ref().unwrap().remaining > least, "{seen:?}");
}

#[tokio::test]
async fn a_lost_reply_is_unknown_and_what_it_did_is_undone() {
    let server = Redis::start().await;
    // Each request has a manager of its own, because a connection that did not answer is given up.
    let (acquiring, releasing) = (impatient(server.url()).await, impatient(server.url()).await);
    let guard = releasing.acquire("held").ttl(Ttl::secs(60)).await.unwrap();
    // The first acquire of a connection, or of a shard, sends another request before.
    let first = acquiring.acquire("r").await.unwrap();
    first.release().await.unwrap();
    let commands = commands(server.url()).await;
    let counters = async || -> BTreeMap<String, u64> {
        let mut commands = commands.clone();
        let keys: Vec<String> = commands.keys("*:counter").await.unwrap();
        let counts: Vec<u64> = commands.mget(&keys).await.unwrap();
        keys.into_iter().zip(counts).collect()
    };
    let before = counters().await;

    server.pause().await;
    let acquire = acquiring
        .acquire("r")
        .ttl(Ttl::secs(60))
        .try_acquire()
        .await
        .unwrap_err();
    assert_eq!(
        (acquire.kind(), acquire.outcome()),
        (ErrorKind::Unavailable, Outcome::Unknown)
    );
    let release = guard.release().await.unwrap_err();
    assert_eq!(
        (release.kind(), release.outcome()),
        (ErrorKind::Unavailable, Outcome::Unknown)
    );
    server.resume().await;

    // The server now runs the requests that it had received: the acquire is granted, and the
    // watchdog gives the lease back.
    until("granted", async || counters().await != before).await;
    for resource in ["r", "held"] {
        let resource = ResourceName::new(resource).unwrap();
        until("undone", async || {
            acquiring
                .inspect(&resource)
                .await
                .is_ok_and(|seen| seen.holder.is_none())
        })
        .await;
    }
}

/// Catches: a counter that another program has changed is read as a number, or granted from.
#[tokio::test]
async fn a_counter_that_is_none_is_a_typed_error_and_leaves_no_lease() {
    let world = world().await;
    let guard = world.locks.acquire("r").await.unwrap();
    guard.release().await.unwrap();
    let counter = world.keys("*:counter").await.remove(0);
    let mut commands = world.commands.clone();
    let broken = [
        redis::cmd("SET").arg(&counter).arg("many").to_owned(),
        redis::cmd("SET").arg(&counter).arg("-5").to_owned(),
        redis::cmd("SET")
            .arg(&counter)
            .arg("1234567890123456")
            .to_owned(),
        redis::cmd("SET")
            .arg(&counter)
            .arg(7)
            .arg("EX")
            .arg(1000)
            .to_owned(),
        redis::pipe()
            .del(&counter)
            .rpush(&counter, 7)
            .cmd_iter()
            .last()
            .unwrap()
            .to_owned(),
    ];
    for command in broken {
        let () = commands.del(&counter).await.unwrap();
        let () = command.exec_async(&mut commands).await.unwrap();
        let error = world.locks.acquire("r").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CounterBroken, "{error}");
        assert_eq!(error.outcome(), Outcome::NotApplied);
        assert!(
            world.keys("*:lease:*").await.is_empty(),
            "a lease was left behind"
        );
    }
    let () = commands
        .set(&counter, FencingToken::MAX.get())
        .await
        .unwrap();
    let error = world.locks.acquire("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TokensExhausted);
    assert!(world.keys("*:lease:*").await.is_empty());
}

#[tokio::test]
async fn of_an_idle_resource_nothing_stays() {
    let world = world().await;
    for number in 0..20 {
        let guard = world.locks.acquire(format!("r{number}")).await.unwrap();
        if number % 2 == 0 {
            guard.release().await.unwrap();
        }
    }
    for number in 0..20 {
        world.until_free(&format!("r{number}")).await;
    }
    let permanent = |key: &String| key.ends_with(":counter") || key.ends_with(":config");
    let keys = world.keys("*").await;
    assert!(keys.iter().all(permanent), "{keys:?}");

    // Another client may know this holder, and its request may come late. So the release leaves a
    // tombstone for a while.
    let guard = world.locks.acquire("given").holder(Holder::random()).await;
    guard.unwrap().release().await.unwrap();
    let keys = world.keys("*").await;
    let mut passing: Vec<_> = keys.iter().filter(|key| !permanent(key)).collect();
    passing.sort_unstable();
    let [lease, tombstone] = passing[..] else {
        panic!("{passing:?}");
    };
    assert!(lease.ends_with(":lease:given"), "{lease}");
    assert!(tombstone.ends_with(":suspended:given"), "{tombstone}");
    for key in passing {
        let ttl: u64 = world.commands.clone().pttl(key).await.unwrap();
        assert!(Duration::from_millis(ttl) <= QUEUE_TTL, "{ttl} ms");
    }
}

/// Catches: clients with different numbers of shards draw the tokens of a resource from two
/// counters.
#[tokio::test]
async fn another_layout_under_the_same_prefix_is_refused() {
    let world = world().await;
    let url = redis().await.url();
    let options = ConnectOptions::from(url).prefix(&world.prefix);
    let error = palisade::connect(options.parameter("shards", "32"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConfigMismatch);
    assert!(
        error.to_string().contains("9:64 there and 9:32 here"),
        "{error}"
    );
}

/// Catches: two counters for a resource, because a client that had connected before does not
/// compare the layout.
#[tokio::test]
async fn after_a_flush_the_layout_is_compared_before_a_counter_starts() {
    let server = Redis::start().await;
    let world = world_on(server.url()).await;
    world
        .locks
        .acquire("r")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let mut commands = commands(server.url()).await;
    let () = redis::cmd("FLUSHALL")
        .query_async(&mut commands)
        .await
        .unwrap();
    let () = commands
        .set(format!("{}:config", world.prefix), "5:32")
        .await
        .unwrap();
    let error = world.locks.acquire("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConfigMismatch, "{error}");
    let keys: Vec<String> = commands.keys("*").await.unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

/// Catches: the error of a failed connection or login shows the password.
#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_passwords_stay_secret() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("redis://user:hunter2@127.0.0.1:{port}");
    let error = palisade::connect(&url).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Unavailable, Outcome::NotApplied)
    );
    assert!(
        !format!("{error} {error:?}").contains("hunter2"),
        "{error:?}"
    );

    let (host, wrong) = redis().await.url().split_once("//").unwrap();
    let url = format!("{host}//user:hunter2@{wrong}");
    let error = palisade::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(
        !format!("{error} {error:?}").contains("hunter2"),
        "{error:?}"
    );
}

/// Catches: an error of one lease makes its whole batch fail.
#[tokio::test]
async fn one_wrong_key_does_not_keep_the_others_from_being_renewed() {
    let world = world().await;
    let url = redis().await.url();
    let options = ConnectOptions::from(url).prefix(&world.prefix);
    let backend = RedisBackend::connect(options, Arc::new(TokioRuntime))
        .await
        .unwrap();
    let mut renewals = Vec::new();
    for name in ["a", "b"] {
        let attempt = AttemptRef::new(
            &TokioRuntime,
            ResourceName::new(name).unwrap(),
            Holder::random(),
        );
        let request = AcquireRequest::new(attempt, Ttl::secs(60));
        let Attempt::Granted(grant) = LockBackendExt::acquire(&backend, &request).await.unwrap()
        else {
            panic!("it is free")
        };
        let AttemptRef {
            resource, holder, ..
        } = request.attempt;
        let issuer = Issuer::new("redis").unwrap();
        let sequencer = Sequencer::new(issuer, resource, grant.token, holder);
        renewals.push(lock_core::backend::RenewRequest::new(
            sequencer,
            Ttl::secs(60),
        ));
    }
    let wrong = world.keys("*:lease:a").await.remove(0);
    let mut commands = world.commands.clone();
    let () = commands.del(&wrong).await.unwrap();
    let () = commands.rpush(&wrong, "not a lease").await.unwrap();
    let answers = LockBackend::renew(&backend, &renewals).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::Refused);
    assert!(matches!(
        answers[1],
        Ok(lock_core::backend::Renewed::Renewed(_))
    ));
}
