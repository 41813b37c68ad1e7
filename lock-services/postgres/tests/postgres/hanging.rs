//! Commits that hang, because a synchronous standby does not answer.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use e2e::servers::{DatabaseServer, until};
use lock_core::{
    Attempt, Error, ErrorKind, Holder, Issuer, LockManager, Outcome, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, LockBackend as _, LockBackendExt, RenewRequest,
        Renewed, Runtime, TokioRuntime,
    },
};
use palisade_postgres::PostgresBackend;
use sqlx::{AssertSqlSafe, Executor as _, PgPool, postgres::PgConnectOptions};
use tokio::time::timeout;

use crate::world::{count, manager, migrate, named};

const TTL: Ttl = Ttl::secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
/// Shorter than a request waits for a row that is locked.
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The response timeout of clients whose renewals must have an answer. It is no longer than a
/// request waits for a row that is locked.
const PATIENT: Duration = Duration::from_secs(2);

/// The time for which an acquire that does not wait is repeated, plus the time for the answer to
/// the last request, plus the delay of a busy machine.
const LONGEST: Duration = Duration::from_secs(2 + 2 + 3);

/// Sessions whose commit hangs.
const HANGING: &str = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";

/// A client whose commits wait for the standby as `commit` says, if they are flushed.
async fn client(url: &str, commit: &str, response_timeout: Duration) -> PostgresBackend {
    let address: PgConnectOptions = url.parse().unwrap();
    let address = address.options([("synchronous_commit", commit)]);
    let pool = PgPool::connect_with(address).await.unwrap();
    let options = ConnectOptions::default().response_timeout(response_timeout);
    let started = PostgresBackend::on(pool, options, Arc::new(TokioRuntime)).await;
    started.unwrap()
}

fn request(resource: &str) -> AcquireRequest {
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, named(resource), Holder::random()),
        TTL,
    )
}

async fn granted(backend: &PostgresBackend, request: &AcquireRequest) -> Sequencer {
    let grant = backend.acquire(request).await.unwrap().granted().unwrap();
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    Sequencer::new(
        Issuer::new("postgres").unwrap(),
        resource,
        grant.token,
        holder,
    )
}

async fn renew<const N: usize>(
    backend: &PostgresBackend,
    leases: [&Sequencer; N],
) -> [Result<Renewed, Error>; N] {
    let leases = leases.map(|lease| RenewRequest::new(lease.clone(), TTL));
    backend.renew(&leases).await.try_into().unwrap()
}

fn is_renewed(answer: &Result<Renewed, Error>) -> bool {
    matches!(answer, Ok(Renewed::Renewed(_)))
}

/// Checks that an acquire ends in time, with an error whose outcome is unknown.
async fn hangs(backend: &PostgresBackend, request: &AcquireRequest) {
    let asked = TokioRuntime.now();
    let answer = backend.acquire(request).await;
    let error = answer.expect_err("its commit does not hang");
    let took = TokioRuntime.now().since(asked);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!(took >= RESPONSE_TIMEOUT && took < LONGEST, "{took:?}");
}

/// The token that others see.
async fn token_of(locks: &LockManager, resource: &str) -> Option<u64> {
    let seen = locks.inspect(&named(resource)).await.unwrap();
    Some(seen.holder?.token.get())
}

/// Some commits hang and others do not. The standby receives all changes but replays none, and only
/// one client waits until its changes are replayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_hangs_holds_up_no_other_lease() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let standby = server.standby().await;
    server.wait_for_standby().await;
    let steady = client(server.url(), "on", PATIENT).await;
    let impatient = client(server.url(), "on", RESPONSE_TIMEOUT).await;
    let hanging = client(server.url(), "remote_apply", RESPONSE_TIMEOUT).await;
    let stuck_request = request("stuck");
    let stuck = granted(&steady, &stuck_request).await;
    let free = granted(&steady, &request("free")).await;
    let shown = PgPool::connect(standby.url()).await.unwrap();
    let pause = "select pg_wal_replay_pause()";
    shown.execute(pause).await.unwrap();
    let paused = "select count(*) where pg_get_wal_replay_pause_state() = 'paused'";
    until("it shows nothing more", async || {
        count(&shown, paused).await == 1
    })
    .await;

    // One request changes the row of a lease that exists, and the other takes a new resource.
    let (mut again, wanted) = (stuck_request.clone(), request("wanted"));
    again.attempt = AttemptRef::new(&TokioRuntime, named("stuck"), stuck_request.attempt.holder);
    tokio::join!(hangs(&hanging, &again), hangs(&hanging, &wanted));
    let pool = PgPool::connect(server.url()).await.unwrap();
    assert_eq!(count(&pool, HANGING).await, 2);

    let asked = TokioRuntime.now();
    let [of_stuck, of_free] = renew(&steady, [&stuck, &free]).await;
    let took = TokioRuntime.now().since(asked);
    assert!(is_renewed(&of_free), "{of_free:?}");
    let error = of_stuck.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
    assert!(took < PATIENT, "{took:?}");
    let another = granted(&steady, &request("another")).await;
    assert!(another.token() > free.token());
    // A request for the same resource hangs, too.
    hangs(&impatient, &request("wanted")).await;
    // But no session is left waiting for a client that has given up.
    let behind = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    until("no session waits there", async || {
        count(&pool, behind).await == 0
    })
    .await;
    assert_eq!(count(&pool, HANGING).await, 2);

    shown
        .execute("select pg_wal_replay_resume()")
        .await
        .unwrap();
    until("no commit hangs", async || count(&pool, HANGING).await == 0).await;
    // The request is sent again, and finds its own lease.
    let found = granted(&hanging, &wanted).await;
    let seen = steady.inspect(&named("wanted")).await.unwrap();
    assert_eq!(seen.holder.unwrap().token, found.token());
    let [of_stuck, of_free] = renew(&steady, [&stuck, &free]).await;
    assert!(
        is_renewed(&of_stuck) && is_renewed(&of_free),
        "{of_stuck:?} {of_free:?}"
    );
}

/// The event that ends the hang.
#[derive(Clone, Copy, Debug)]
enum End {
    StandbyIsBack,
    SettingIsCleared,
}

/// No grant is confirmed unless the standby has it, and no held resource is granted. A holder goes
/// on renewing its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_all_commits_hang_nothing_is_granted_and_after_that_everything_goes_on() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let standby = server.standby().await;
    server.wait_for_standby().await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    let (one, other) = (
        client(server.url(), "local", PATIENT).await,
        client(server.url(), "on", PATIENT).await,
    );
    let hasty = client(server.url(), "on", RESPONSE_TIMEOUT).await;
    let hasty = LockManager::builder().build(hasty).unwrap();
    let locks = manager(server.url()).await;
    let guard = locks.acquire("guarded").ttl(TTL).await.unwrap();
    let held = granted(&one, &request("held")).await;
    for end in [End::StandbyIsBack, End::SettingIsCleared] {
        standby.kill().await;
        let gone = "select count(*) from pg_stat_replication";
        until("it is gone", async || count(&pool, gone).await == 0).await;

        let giver_up = hasty.clone();
        let given_up = async move { giver_up.acquire("given-up").ttl(TTL).try_acquire().await };
        let given_up = tokio::spawn(given_up);
        let wanted = request(&format!("wanted:{end:?}"));
        hangs(&one, &wanted).await;
        let [renewed] = renew(&one, [&held]).await;
        assert!(is_renewed(&renewed), "{end:?}: {renewed:?}");
        let answer = other.acquire(&request("held")).await;
        assert!(
            matches!(answer, Ok(Attempt::Held { .. })),
            "{end:?}: {answer:?}"
        );
        let error = given_up.await.unwrap().unwrap_err();
        assert_eq!(error.outcome(), Outcome::Unknown, "{end:?}: {error}");
        assert!(guard.is_held(), "{end:?}");

        match end {
            End::StandbyIsBack => standby.start_again().await,
            End::SettingIsCleared => {
                for statement in [
                    "alter system reset synchronous_standby_names",
                    "select pg_reload_conf()",
                ] {
                    let statement = AssertSqlSafe(statement.to_owned());
                    pool.execute(sqlx::raw_sql(statement)).await.unwrap();
                }
            }
        }
        until("no commit hangs", async || count(&pool, HANGING).await == 0).await;
        until("what was given up is free", async || {
            token_of(&locks, "given-up").await.is_none()
        })
        .await;
        let found = granted(&one, &wanted).await;
        assert_eq!(
            token_of(&locks, wanted.attempt.resource.as_str()).await,
            Some(found.token().get())
        );
    }
    assert!(guard.is_held());
    let token = guard.token();
    guard.release().await.unwrap();
    let next = timeout(PATIENCE, locks.acquire("guarded").into_future()).await;
    assert!(next.expect("an answer").unwrap().token() > token);
}
