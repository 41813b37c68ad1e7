use std::process::Output;

use e2e::servers::{
    DatabaseServer, Etcd, PgBouncer, PoolMode, Redis, ZooKeeper, mariadb_database, mysql_database,
    postgres_database,
};
use fenced_store::PgFencedStore;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::exit_codes::{closed_address, run};

/// Everything that `doctor` found, as `level of: text`, and its exit code.
fn examined(arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let Output { status, stdout, .. } = run(&[&["doctor", "--json"][..], arguments].concat());
    let said: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(said["fit"], status.success(), "{said}");
    let findings = said["findings"].as_array().unwrap().iter().map(|found| {
        let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        let change = text("change");
        format!(
            "{} {}: {} -> {change}",
            text("level"),
            text("of"),
            text("text")
        )
    });
    (status.code(), findings.collect())
}

#[track_caller]
fn assert_has(findings: &[String], expected: &str) {
    let parts: Vec<_> = expected.split("..").collect();
    let is_it = |found: &&String| parts.iter().all(|part| found.contains(part));
    assert!(
        findings.iter().any(|found| is_it(&found)),
        "{expected}: {findings:#?}"
    );
}

/// The first finding is about the test servers: they lose data in a crash.
#[tokio::test]
async fn the_doctor_says_what_is_good_and_what_has_to_be_changed() {
    let (redis, postgres) = (Redis::start().await, postgres_database().await);
    let pgbouncer = PgBouncer::start(&postgres, PoolMode::Transaction).await;
    let (lock, store) = (redis.url(), &pgbouncer.url(&postgres));
    let (code, found) = examined(&["--lock", lock, "--store", store]);
    assert_eq!(code, Some(1), "{found:#?}");
    for expected in [
        "good lock: a lease was granted with token",
        "advice lock: ..set appendonly to yes",
        "good store: PostgreSQL ",
        "wrong store: fsync is off..stale writes",
        "wrong store: the tables..are missing..migrate",
        "advice store: a pooler is in between",
        "good store: its clock agrees",
    ] {
        assert_has(&found, expected);
    }
    for database in [mariadb_database().await, mysql_database().await] {
        let (code, found) = examined(&["--lock", lock, "--store", database.url()]);
        assert_eq!(code, Some(1), "{found:#?}");
        assert_has(
            &found,
            "wrong store: innodb_flush_log_at_trx_commit is not 1..set it to 1",
        );
    }
    let text = run(&["doctor", "--lock", lock]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("advice") && text.contains("nothing has to be changed"),
        "{text}"
    );
}

#[tokio::test]
async fn the_doctor_finds_a_store_that_follows_another_lock_service() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), Redis::start().await);
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let scenario = [
        "scenario",
        "--ttl=200ms",
        "--pause=0ms",
        "--quiet",
        "--store",
    ];
    assert!(run(&[&scenario[..], &[&store]].concat()).status.success());
    let (code, found) = examined(&["--store", &store]);
    assert_eq!(code, Some(0), "{found:#?}");
    let (code, found) = examined(&["--store", &store, "--lock", redis.url()]);
    assert_eq!(code, Some(1), "{found:#?}");
    assert_has(
        &found,
        "wrong store: ..tokens of \"sqlite\"..\"redis\"..--issuer",
    );
}

#[test]
fn the_doctor_tells_of_all_that_is_down_and_shows_no_password() {
    let [lock, store] = ["redis://:hunter2@", "postgres://me:hunter2@"]
        .map(|scheme| format!("{scheme}{}/0", closed_address()));
    let (code, found) = examined(&["--lock", &lock, "--store", &store]);
    assert_eq!(code, Some(3));
    for expected in ["down lock: ..--lock", "down store: ..--store"] {
        assert_has(&found, expected);
    }
    assert!(!found.concat().contains("hunter2"), "{found:#?}");
    assert_eq!(run(&["doctor"]).status.code(), Some(2));
}

#[track_caller]
fn assert_lacks(findings: &[String], part: &str) {
    assert!(
        !findings.iter().any(|found| found.contains(part)),
        "{part}: {findings:#?}"
    );
}

/// Each finding names the server's own message. After its advice was followed, the finding is gone.
/// Catches: the advice to give rights, although another fault kept the lease from being granted.
#[tokio::test]
async fn the_doctor_names_the_cause_that_keeps_leases_from_being_granted() {
    let granted = "a lease was granted";
    let redis = Redis::start().await;
    let lock = ["--lock", redis.url()];
    let () = redis
        .command(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .await;
    let (code, found) = examined(&lock);
    assert_eq!(code, Some(3), "{found:#?}");
    assert_has(&found, "down lock: ..NOREPLICAS");
    assert_lacks(&found, "rights");
    let () = redis
        .command(&["CONFIG", "SET", "min-replicas-to-write", "0"])
        .await;
    assert_has(&examined(&lock).1, granted);

    let user = redis.allow_documented("-evalsha").await;
    let (code, found) = examined(&["--lock", &user]);
    assert_eq!(code, Some(1), "{found:#?}");
    assert_has(&found, "wrong lock: ..evalsha..docs/operations/rights.md");
    let user = redis.allow_documented("").await;
    assert_has(&examined(&["--lock", &user]).1, granted);

    let etcd = Etcd::start().await;
    etcd.set_without_space(true).await;
    let lock = ["--lock", &etcd.url()];
    assert_has(&examined(&lock).1, "wrong lock: ..disarm the alarm");
    etcd.set_without_space(false).await;
    let (code, found) = examined(&lock);
    assert_eq!(code, Some(0), "{found:#?}");
}

/// Without channels a hand-over takes ten times as long, and nothing else shows the fault.
#[tokio::test]
async fn the_doctor_finds_a_redis_user_without_channels() {
    let redis = Redis::start().await;
    let refused = "advice lock: the server refuses a channel..ssubscribe..NoPerm";
    for denied in ["-ssubscribe", "resetchannels"] {
        let user = redis.allow_documented(denied).await;
        let (code, found) = examined(&["--lock", &user]);
        assert_eq!(code, Some(0), "{found:#?}");
        assert_has(&found, refused);
    }
    let user = redis.allow_documented("").await;
    let (_, found) = examined(&["--lock", &user]);
    assert_has(&found, "good lock: a waiter had it");
    assert_lacks(&found, "the server refuses a channel");
}

/// Catches: a probe that asks for a longer lease than such a session can keep.
#[tokio::test]
async fn the_doctor_finds_nothing_wrong_with_short_sessions_of_zookeeper() {
    let server = ZooKeeper::start_with(&["maxSessionTimeout=10000"]).await;
    let (code, found) = examined(&["--lock", &server.url()]);
    assert_eq!(code, Some(0), "{found:#?}");
    assert_has(&found, "good lock: a waiter had it");
}

#[tokio::test]
async fn the_doctor_says_of_a_standby_what_chooses_the_primary() {
    let server = DatabaseServer::postgres(&[]).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    PgFencedStore::new(pool).migrate().await.unwrap();
    let standby = server.lagging_standby().await;
    let (code, found) = examined(&[
        "--lock",
        "postgres://127.0.0.1:1/x",
        "--store",
        standby.url(),
    ]);
    assert_eq!(code, Some(3), "{found:#?}");
    assert_has(&found, "wrong store: it is a standby..name the primary");
    assert_lacks(&found, "target_session_attrs");
    let (code, found) = examined(&["--store", standby.url()]);
    assert_eq!(code, Some(3), "{found:#?}");
    assert_has(&found, "down lock: ..it is a standby");
    let (_, found) = examined(&["--store", server.url()]);
    assert_lacks(&found, "it is a standby");
    assert_has(&found, "good store: it is the primary");
}

/// Each right is wider than any program needs. After the advice was followed, the finding is gone.
/// Catches: a right with which a role gets past the rule, and which no operator sees.
#[tokio::test]
async fn the_doctor_finds_rights_that_are_wider_than_needed() {
    let postgres = postgres_database().await;
    let pool = PgPool::connect(postgres.url()).await.unwrap();
    PgFencedStore::new(pool.clone()).migrate().await.unwrap();
    let role = format!("wide_{:016x}", rand::random::<u64>());
    let widen = format!(
        "CREATE ROLE {role};
         GRANT CREATE ON SCHEMA fenced, fenced_guards TO {role};
         SET ROLE {role};
         CREATE FUNCTION fenced.check_row_write(text, text) RETURNS void LANGUAGE sql AS '';
         RESET ROLE;
         GRANT EXECUTE ON FUNCTION fenced.force_release TO PUBLIC;
         GRANT UPDATE, DELETE ON fenced.high_water_mark TO {role};
         CREATE TABLE accounts (id int);
         CREATE FUNCTION fenced.guard_old() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
           AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER fenced_guard AFTER INSERT ON accounts
           FOR EACH ROW EXECUTE FUNCTION fenced.guard_old()"
    );
    pool.execute(sqlx::raw_sql(AssertSqlSafe(widen)))
        .await
        .unwrap();
    let (_, found) = examined(&["--store", postgres.url()]);
    let expected = [
        format!("{role} may create in the schema fenced,"),
        format!("{role} may create in the schema fenced_guards,"),
        "the function fenced.check_row_write(text,text) belongs to another role".to_owned(),
        "PUBLIC may call fenced.force_release".to_owned(),
        format!("{role} may write to fenced.high_water_mark"),
        "the triggers of public.accounts call fenced.guard_old()".to_owned(),
    ];
    for wide in &expected {
        let finding = found.iter().find(|found| found.contains(wide.as_str()));
        let finding = finding.unwrap_or_else(|| panic!("{wide}: {found:#?}"));
        let (_, advice) = finding.split_once(" -> ").unwrap();
        let advice = advice.split(", and ").next().unwrap().to_owned();
        pool.execute(sqlx::raw_sql(AssertSqlSafe(advice)))
            .await
            .unwrap();
    }
    let (_, found) = examined(&["--store", postgres.url()]);
    for wide in &expected {
        assert!(
            !found.iter().any(|found| found.contains(wide.as_str())),
            "{wide}: {found:#?}"
        );
    }
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    pool.execute(sqlx::raw_sql(AssertSqlSafe(drop)))
        .await
        .unwrap();
}
