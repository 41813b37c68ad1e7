//! Servers that are refused, sessions that are killed, and tables and rows that others have locked.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use e2e::servers::{DatabaseServer, MySqlServer, OnMariaDb, until};
use lock_core::{
    Attempt, Error, ErrorKind, Holder, Issuer, LockManager, Outcome, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, LockBackend as _, LockBackendExt, RenewRequest,
        Renewed, Runtime, TokioRuntime,
    },
};
use palisade_mysql::MySqlBackend;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, MySqlPool};
use tokio::time::timeout;

use crate::world::{connect, count, database_of, manager, migrate, named, on_each_server};

const TTL: Ttl = Ttl::secs(60);
const PATIENCE: Duration = Duration::from_secs(30);

async fn refusal(url: &str) -> Error {
    let connected = MySqlBackend::connect(url, Arc::new(TokioRuntime)).await;
    connected.expect_err("it is not refused")
}

fn request(resource: &str) -> AcquireRequest {
    let attempt = AttemptRef::new(&TokioRuntime, named(resource), Holder::random());
    AcquireRequest::new(attempt, TTL)
}

async fn granted(backend: &MySqlBackend, request: &AcquireRequest) -> Sequencer {
    let grant = backend.acquire(request).await.unwrap().granted().unwrap();
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    Sequencer::new(Issuer::new("mysql").unwrap(), resource, grant.token, holder)
}

async fn read_only_and_statements_in_the_log_are_found_out_at_connect<S: MySqlServer>() {
    let server = S::start().await;
    migrate(server.url()).await;
    let root = MySqlPool::connect(server.url()).await.unwrap();
    // An older client goes on, and the procedures refuse it.
    let locks = manager(server.url()).await;
    let guard = locks.acquire("before").ttl(TTL).await.unwrap();
    root.execute("SET GLOBAL read_only = 1").await.unwrap();
    for error in [
        refusal(server.url()).await,
        locks.acquire("r").try_acquire().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("read_only"), "{error}");
    }
    root.execute("SET GLOBAL read_only = 0").await.unwrap();
    guard.release().await.unwrap();

    root.execute("SET GLOBAL binlog_format = 'STATEMENT'")
        .await
        .unwrap();
    let has_log = count(&root, "SELECT @@log_bin = 1").await == 1;
    if has_log {
        let error = refusal(server.url()).await;
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("binlog_format"), "{error}");
    } else {
        // If there is no binary log, its format does not matter.
        connect(server.url()).await;
    }
}

async fn a_database_without_the_schema_says_so<S: MySqlServer>() {
    let database = S::database().await;
    let error = refusal(database.url()).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("migrations"), "{error}");
    let (server, _) = database.url().rsplit_once('/').unwrap();
    let error = refusal(server).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

/// The session of this database that waits for the row of a lease. Sessions in `but` do not count:
/// a session that was killed, or whose statement was answered, stays in the list for a moment.
async fn waits_for_a_row<S: MySqlServer>(root: &MySqlPool, but: &[i64]) -> i64 {
    let but: Vec<_> = but.iter().map(i64::to_string).collect();
    let waiting = format!(
        "SELECT CAST(COALESCE(MAX(id), 0) AS SIGNED) FROM {}
         WHERE db = DATABASE() AND info LIKE '%fenced_lease%FOR UPDATE' AND id NOT IN ({})",
        S::SESSIONS,
        but.join(", ")
    );
    let id = AtomicI64::new(0);
    until("a session waits", async || {
        id.store(count(root, &waiting).await, Ordering::Relaxed);
        id.load(Ordering::Relaxed) > 0
    })
    .await;
    id.into_inner()
}

/// A `KILL QUERY` runs no handler of a procedure, so the transaction stays open.
/// Catches: a session with an open transaction that goes back to the pool, and keeps a row locked.
async fn a_killed_request_keeps_no_row_locked<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let root = MySqlPool::connect(database.url()).await.unwrap();
    let backend = connect(database.url()).await;
    let lease = granted(&backend, &request("r")).await;
    let mut other = MySqlConnection::connect(database.url()).await.unwrap();
    let own = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let own: i64 = sqlx::query_scalar(own).fetch_one(&mut other).await.unwrap();
    let mut others = vec![own];
    for kill in ["KILL QUERY", "KILL CONNECTION"] {
        // The next request waits for this row inside its procedure.
        other.execute("START TRANSACTION").await.unwrap();
        let lock = "SELECT * FROM fenced_lease WHERE resource = 'r' FOR UPDATE";
        other.execute(lock).await.unwrap();
        let killing = async {
            let id = waits_for_a_row::<S>(&root, &others).await;
            let kill = AssertSqlSafe(format!("{kill} {id}"));
            root.execute(kill).await.unwrap();
            id
        };
        let (released, id) = tokio::join!(backend.release(&lease, true), killing);
        others.push(id);
        let error = released.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{kill}: {error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{kill}: {error}");
        other.execute("ROLLBACK").await.unwrap();
        // A renewal skips a row that is locked, and the client may learn first that its session is
        // over.
        until("the row is free", async || {
            let renewal = RenewRequest::new(lease.clone(), TTL);
            match &backend.renew(&[renewal]).await[..] {
                [Ok(Renewed::Renewed(_))] => true,
                [Err(error)] if error.outcome() == Outcome::NotApplied => false,
                other => panic!("{kill}: {other:?}"),
            }
        })
        .await;
        let answer = backend.acquire(&request("r")).await.unwrap();
        assert!(matches!(answer, Attempt::Held { .. }), "{kill}");
    }
}

/// A commit that hangs locks a row in the same way.
async fn a_row_that_another_transaction_locks_holds_up_no_other_lease<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let root = MySqlPool::connect(database.url()).await.unwrap();
    let options = ConnectOptions::from(database.url());
    let response_timeout = Duration::from_secs(2);
    let backend = connect(options.response_timeout(response_timeout)).await;
    let (stuck, free) = (request("stuck"), request("free"));
    let (stuck, free) = (
        granted(&backend, &stuck).await,
        granted(&backend, &free).await,
    );
    let mut other = MySqlConnection::connect(database.url()).await.unwrap();
    other.execute("START TRANSACTION").await.unwrap();
    let lock = "SELECT * FROM fenced_lease WHERE resource = 'stuck' FOR UPDATE";
    other.execute(lock).await.unwrap();

    let asked = TokioRuntime.now();
    let leases = [&stuck, &free].map(|lease| RenewRequest::new(lease.clone(), TTL));
    let renewed = backend.renew(&leases).await;
    let took = TokioRuntime.now().since(asked);
    let [Err(of_stuck), Ok(Renewed::Renewed(_))] = &renewed[..] else {
        panic!("{renewed:?}");
    };
    assert_eq!(of_stuck.outcome(), Outcome::NotApplied, "{of_stuck}");
    assert!(took < response_timeout, "{took:?}");
    granted(&backend, &request("another")).await;
    let answer = backend.acquire(&request("stuck")).await;
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable);
    // No session is left waiting for a client that has given up.
    let behind = format!(
        "SELECT COUNT(*) FROM {}
         WHERE db = DATABASE() AND info LIKE '%FOR UPDATE' AND info NOT LIKE '%processlist%'",
        S::SESSIONS
    );
    until("no session waits", async || {
        count(&root, &behind).await == 0
    })
    .await;
    other.execute("ROLLBACK").await.unwrap();
    let renewed = backend.renew(&leases).await;
    assert!(
        renewed
            .iter()
            .all(|answer| matches!(answer, Ok(Renewed::Renewed(_))))
    );
}

/// A backup keeps all writes out. Nothing is granted during the backup, and after it everything
/// goes on.
async fn a_backup_that_locks_all_tables_ends_no_lease<S: MySqlServer>() {
    let server = S::start().await;
    migrate(server.url()).await;
    let options = ConnectOptions::from(server.url());
    let backend = connect(options.response_timeout(Duration::from_millis(500))).await;
    let hasty = LockManager::builder().build(backend).unwrap();
    let locks = manager(server.url()).await;
    let guard = locks.acquire("guarded").ttl(TTL).await.unwrap();
    let mut backup = MySqlConnection::connect(server.url()).await.unwrap();
    backup.execute("FLUSH TABLES WITH READ LOCK").await.unwrap();
    let waiting = locks.clone();
    let waiting = tokio::spawn(async move { waiting.acquire("free").ttl(TTL).await });
    let error = hasty.acquire("other").try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(guard.is_held());
    assert!(!waiting.is_finished());
    backup.execute("UNLOCK TABLES").await.unwrap();
    let waiting = timeout(PATIENCE, waiting).await.expect("an answer");
    waiting.unwrap().unwrap().release().await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    let next = timeout(PATIENCE, locks.acquire("guarded").into_future()).await;
    assert!(next.unwrap().unwrap().token() > token);
}

/// The clock of such a server shows the begin of a statement, and `SET timestamp` sets it.
async fn a_server_whose_clock_a_user_can_set_is_refused<S: MySqlServer>() {
    let server = DatabaseServer::mysql_with(S::KIND, &["--sysdate-is-now"]).await;
    migrate(server.url()).await;
    let error = refusal(server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("--sysdate-is-now"), "{error}");
}

/// Two nodes would lock the same row at once.
#[tokio::test]
async fn a_galera_cluster_is_refused() {
    let port = e2e::port::free().unwrap();
    let listen = format!("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port}");
    let options = [
        "--wsrep-on=ON",
        "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
        "--wsrep-cluster-address=gcomm://",
        "--binlog-format=ROW",
        &listen,
    ];
    let server = DatabaseServer::mysql_with(OnMariaDb::KIND, &options).await;
    migrate(server.url()).await;
    let error = refusal(server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("Galera"), "{error}");
}

on_each_server!(
    read_only_and_statements_in_the_log_are_found_out_at_connect,
    a_database_without_the_schema_says_so,
    a_killed_request_keeps_no_row_locked,
    a_row_that_another_transaction_locks_holds_up_no_other_lease,
    a_backup_that_locks_all_tables_ends_no_lease,
    a_server_whose_clock_a_user_can_set_is_refused,
);
