//! A user with the documented rights attacks the tables, the arguments and the session.

use e2e::{
    documented::query_for_operators,
    servers::{MySqlDatabase, MySqlServer},
};
use lock_core::{ErrorKind, LockManager, Ttl};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, MySqlPool};

use crate::world::{count, database_of, manager, named, on_each_server};

struct World {
    database: MySqlDatabase,
    owner: MySqlPool,
    /// The user's URL.
    url: String,
    /// The user's name.
    name: String,
}

impl World {
    async fn on<S: MySqlServer>() -> Self {
        let database = database_of::<S>().await;
        let owner = MySqlPool::connect(database.url()).await.unwrap();
        let name = format!("u{:016x}", rand::random::<u64>());
        let create = format!("CREATE USER {name}@'%' IDENTIFIED BY 'sesame'");
        owner.execute(AssertSqlSafe(create)).await.unwrap();
        let grants = query_for_operators("leases in MariaDB").replace("app@", &format!("{name}@"));
        owner
            .execute(sqlx::raw_sql(AssertSqlSafe(grants)))
            .await
            .unwrap();
        let mut url: url::Url = database.url().parse().unwrap();
        // MySQL takes the password of a new user on TLS only.
        url.set_query(None);
        url.set_username(&name).unwrap();
        url.set_password(Some("sesame")).unwrap();
        Self {
            database,
            owner,
            url: url.into(),
            name,
        }
    }

    async fn locks(&self) -> LockManager {
        manager(&self.url).await
    }

    /// A session in which the calls work.
    async fn session(&self) -> MySqlConnection {
        MySqlConnection::connect(&self.url).await.unwrap()
    }

    /// The number of all rows.
    async fn leases(&self) -> i64 {
        let rows =
            "SELECT (SELECT COUNT(*) FROM fenced_lease) + (SELECT COUNT(*) FROM fenced_waiter)
            + (SELECT COUNT(*) FROM fenced_tombstone)";
        count(&self.owner, rows).await
    }
}

/// The number and the text of the error of a statement.
async fn refused(session: &mut MySqlConnection, statement: &str) -> String {
    let sent = session.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned())));
    match sent.await {
        Ok(_) => panic!("not refused: {statement}"),
        Err(error) => error.to_string(),
    }
}

async fn the_documented_rights_are_enough_to_lock_and_end_no_other_lease<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let locks = world.locks().await;
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    assert_eq!(locks.list().await.unwrap().len(), 1);
    let error = locks.force_release(&named("r")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    guard.release().await.unwrap();
    let grant = format!(
        "GRANT EXECUTE ON PROCEDURE fenced_force_release TO {}@'%'",
        world.name
    );
    world.owner.execute(AssertSqlSafe(grant)).await.unwrap();
    let _guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    locks.force_release(&named("r")).await.unwrap();
}

async fn a_user_reads_no_table_and_writes_none<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let _guard = world.locks().await.acquire("r").ttl(Ttl::secs(60)).await;
    let mut session = world.session().await;
    for statement in [
        "SELECT * FROM fenced_lease",
        "SELECT holder FROM fenced_waiter",
        "UPDATE fenced_lease SET holder = ''",
        "DELETE FROM fenced_lease",
        "INSERT INTO fenced_tombstone VALUES ('r', '', '', 0, 0)",
        "LOCK TABLES fenced_lease WRITE",
        "CREATE TABLE fenced_mine (a INT)",
        "DROP PROCEDURE fenced_release",
        "ALTER PROCEDURE fenced_release SQL SECURITY INVOKER",
        "CALL fenced_free('r')",
        "CALL fenced_grant('r', 1, 'h', 'a', 1000, 0, NULL, 1, 0, @granted)",
        "CALL fenced_give_back('r', 1, 'h', NULL, TRUE)",
        "CALL fenced_force_release('r', 1)",
    ] {
        let why = refused(&mut session, statement).await;
        assert!(why.contains("denied"), "{statement}: {why}");
    }
    let body = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    let seen: i64 = sqlx::query_scalar(body)
        .fetch_one(&mut session)
        .await
        .unwrap();
    assert_eq!(seen, 0, "it sees a table");
}

/// Wrong values for the resource of an acquire.
const RESOURCES: &[&str] = &[
    "NULL",
    "''",
    "' '",
    "'a b c'",
    "' a'",
    "'a '",
    "'a\\n'",
    "'a\"b'",
    "'a\\\\b'",
    "'café'",
    "x'ff'",
    "_latin1 x'e9'",
    "REPEAT('a', 257)",
    "CONCAT('a ', REPEAT('a', 257))",
    "CONCAT(REPEAT('a', 65), ' a')",
    "CONCAT('a/b', ' a')",
    "REPEAT('a', 100000)",
];

/// Wrong values for the other arguments of an acquire.
const ARGUMENTS: &[&str] = &[
    "NULL, 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "REPEAT('h', 257), 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', REPEAT('a', 257), 1000, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', NULL, 1000, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 9, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 86400001, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', NULL, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 99999999999999999999, 0, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, -1, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 3155760000001, 'c', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, '', 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, NULL, 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, REPEAT('c', 65), 0, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', -1, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 1000000000000000, NULL, NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, REPEAT('m', 1025), NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, REPEAT('é', 513), NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, 'a\\nb', NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, x'1b', NULL, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, NULL, -1, NULL, NULL",
    "'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, REPEAT('i', 100000)",
];

const CALLS: &[&str] = &[
    "release(NULL, 1, 'h', TRUE)",
    "release('r', NULL, 'h', TRUE)",
    "release('r', 1, NULL, TRUE)",
    "release('r', 1, 'h', NULL)",
    "release_hold('r', 1, 'h', NULL)",
    "release_hold('r', 1, 'h', REPEAT('a', 257))",
    "cancel('a b c', 'h', 'a')",
    "cancel('r', REPEAT('h', 257), 'a')",
    "look(REPEAT('c', 65), NULL)",
    "leases(REPEAT('r', 400))",
];

/// Calls with wrong lists.
fn lists() -> Vec<String> {
    let mut attacks = Vec::new();
    let one = r#"{"resource":"t","ttl_ms":1000}"#;
    let lease = r#"{"resource":"t","token":1,"holder":"h","ttl_ms":1000}"#;
    for list in [
        "NULL".to_owned(),
        "''".to_owned(),
        "'[]'".to_owned(),
        "'[1]'".to_owned(),
        "'{'".to_owned(),
        "'[{}]'".to_owned(),
        format!("'[{}]'", one.replace("1000", "1")),
        format!("'[{}]'", one.replace("1000", "\"x\"")),
        format!("'[{}]'", one.replace("\"t\"", "\"a b c\"")),
        format!("'[{}]'", one.replace("\"t\"", "\"café\"")),
        format!(
            "'[{}]'",
            one.replace("\"t\"", &format!("\"{}\"", "t".repeat(1001)))
        ),
        format!("'[{}]'", one.replace('}', r#","metadata":"a\\u0007"}"#)),
        format!("'[{}]'", one.replace('}', r#","at_least":-1}"#)),
        format!("'[{}{one}]'", format!("{one},").repeat(64)),
    ] {
        attacks.push(format!(
            "CALL fenced_acquire_together({list}, 'h', 'a', NULL)"
        ));
    }
    for list in [
        "NULL".to_owned(),
        "'[]'".to_owned(),
        "'[{}]'".to_owned(),
        format!("'[{}]'", lease.replace("1000", "9")),
        format!("'[{}]'", lease.replace("\"t\"", "null")),
        format!("'[{}{lease}]'", format!("{lease},").repeat(1000)),
    ] {
        attacks.push(format!("CALL fenced_renew({list})"));
    }
    attacks
}

/// The session does not check anything itself.
async fn each_argument_is_bounded<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let mut session = world.session().await;
    session.execute("SET sql_mode = ''").await.unwrap();
    // MySQL has no such setting.
    let unchecked = "SET /*M! check_constraint_checks = OFF, */ @a = 0";
    session.execute(sqlx::raw_sql(unchecked)).await.unwrap();
    let before = world.leases().await;
    let acquire = |resource: &str, rest: &str| format!("CALL fenced_acquire({resource}, {rest})");
    let rest = "'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL";
    let named = RESOURCES.iter().map(|resource| acquire(resource, rest));
    let others = ARGUMENTS.iter().map(|rest| acquire("'bounded'", rest));
    let calls = CALLS.iter().map(|call| format!("CALL fenced_{call}"));
    for attack in named.chain(others).chain(calls).chain(lists()) {
        refused(&mut session, &attack).await;
        assert_eq!(world.leases().await, before, "{attack}");
    }
    // The control.
    let longest = "CONCAT(REPEAT('p', 64), ' ', REPEAT('a', 256))";
    let longest = acquire(longest, rest);
    session.execute(AssertSqlSafe(longest)).await.unwrap();
    assert_eq!(world.leases().await, before + 1);
}

/// Any user may change each of these settings.
async fn no_setting_of_a_session_moves_the_clock_or_ends_a_lease<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let locks = world.locks().await;
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    for set in [
        "SET timestamp = 2000000000",
        "SET timestamp = 1",
        "SET sql_mode = 'ANSI,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
        "SET autocommit = 0",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET sql_select_limit = 1, sql_safe_updates = 1, sql_big_selects = 0",
        "SET NAMES latin1",
        "SET completion_type = 1",
        "SET group_concat_max_len = 4, max_sort_length = 8, div_precision_increment = 0",
    ] {
        let mut session = world.session().await;
        session.execute(set).await.unwrap();
        let acquire = "CALL fenced_acquire('r', 'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL)";
        let row = session.fetch_one(sqlx::raw_sql(acquire)).await.unwrap();
        let outcome: String = sqlx::Row::try_get_unchecked(&row, "outcome").unwrap();
        assert_eq!(outcome, "held", "{set}");
        session.close().await.unwrap();
    }
    for zone in ["SYSTEM", "+01:00", "-12:00"] {
        let mut session = world.session().await;
        let set = format!("SET time_zone = '{zone}'");
        session.execute(AssertSqlSafe(set)).await.unwrap();
        for call in [
            "leases(NULL)",
            "acquire('r', 'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL)",
        ] {
            let why = refused(&mut session, &format!("CALL fenced_{call}")).await;
            assert!(why.contains("time_zone"), "{zone}: {why}");
        }
    }
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// Otherwise a rollback of the caller would take the lease back.
async fn a_call_in_a_transaction_of_the_caller_is_refused_and_leaves_it_alone<S: MySqlServer>() {
    let world = World::on::<S>().await;
    world
        .owner
        .execute("CREATE TABLE mine (a INT)")
        .await
        .unwrap();
    let grant = format!("GRANT ALL ON mine TO {}@'%'", world.name);
    world.owner.execute(AssertSqlSafe(grant)).await.unwrap();
    for begin in ["START TRANSACTION", "SET autocommit = 0"] {
        let mut session = world.session().await;
        session.execute(begin).await.unwrap();
        session
            .execute("INSERT INTO mine VALUES (1)")
            .await
            .unwrap();
        for call in [
            "acquire('r', 'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL)",
            "acquire_together('[]', 'h', 'a', NULL)",
            "renew('[]')",
            "release('r', 1, 'h', TRUE)",
            "release_hold('r', 1, 'h', 'a')",
            "cancel('r', 'h', 'a')",
            "look('c', NULL)",
            "leases(NULL)",
            "forget_tombstones()",
            "lock_service()",
        ] {
            let why = refused(&mut session, &format!("CALL fenced_{call}")).await;
            assert!(why.contains("in progress"), "{call}: {why}");
        }
        session.execute("COMMIT").await.unwrap();
    }
    assert_eq!(count(&world.owner, "SELECT COUNT(*) FROM mine").await, 2);
    assert_eq!(world.leases().await, 0);
}

/// A temporary table hides our table from the calls of its session, even from a procedure that runs
/// with the rights of its definer.
/// Catches: a claim with a token of the caller's choice, which would shut out all other holders
/// permanently.
async fn a_table_that_hides_ours_claims_no_token_that_is_far_ahead<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let guard = world.locks().await.acquire("r").ttl(Ttl::secs(60)).await;
    let grant = format!(
        "GRANT CREATE TEMPORARY TABLES ON {}.* TO {}@'%'",
        world
            .database
            .url()
            .rsplit('/')
            .next()
            .unwrap()
            .split('?')
            .next()
            .unwrap(),
        world.name
    );
    world.owner.execute(AssertSqlSafe(grant)).await.unwrap();
    let mut session = world.session().await;
    let hide = "CREATE TEMPORARY TABLE fenced_lease (resource VARCHAR(321), token BIGINT,
          revocation BIGINT, holder VARCHAR(64), end_us BIGINT, attempts TEXT,
          metadata VARCHAR(1024), is_quiet TINYINT);
        INSERT INTO fenced_lease VALUES ('r', 999999999999990, 0, '', 0, '', NULL, 1)";
    session.execute(sqlx::raw_sql(hide)).await.unwrap();
    let call = "CALL fenced_acquire('r', 'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, 'mysql')";
    let row = session.fetch_one(sqlx::raw_sql(call)).await.unwrap();
    let outcome: String = sqlx::Row::try_get_unchecked(&row, "outcome").unwrap();
    // The caller has deceived only itself.
    assert_eq!(outcome, "granted");
    assert_eq!(
        count(&world.owner, "SELECT COUNT(*) FROM fenced_high_water_mark").await,
        0
    );
    let guard = guard.unwrap();
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// Catches: a reader of a backup who can act as a holder.
async fn no_table_has_what_a_holder_presents<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let locks = world.locks().await;
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let mut session = world.session().await;
    for call in [
        "CALL fenced_acquire('r', 'presented', 'tried', 1000, NULL, 'c', 0, NULL, NULL, NULL,
           NULL)",
        "CALL fenced_cancel('r', 'presented', 'tried-before')",
        "CALL fenced_acquire('s', 'presented', 'tried', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL)",
    ] {
        session.execute(sqlx::raw_sql(call)).await.unwrap();
    }
    let rows = "SELECT CONCAT_WS(' ', resource, holder, attempts) AS row_text FROM fenced_lease
        UNION ALL SELECT CONCAT_WS(' ', resource, holder, attempt) FROM fenced_waiter
        UNION ALL SELECT CONCAT_WS(' ', resource, holder, attempt) FROM fenced_tombstone";
    let rows: Vec<String> = sqlx::query_scalar(rows)
        .fetch_all(&world.owner)
        .await
        .unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    let holder = guard.sequencer().holder();
    let all = rows.join("\n");
    assert!(all.contains(&holder.kept_digest()), "{all}");
    for presented in [&holder.expose(), &holder.digest(), "presented", "tried"] {
        assert!(!all.contains(presented), "{all}");
    }
}

/// The longest and strangest values that the procedures take, and a row that the owner has broken
/// by hand.
/// Catches: one row that makes a list fail for all operators.
async fn one_row_hides_no_other_from_a_list<S: MySqlServer>() {
    let world = World::on::<S>().await;
    let locks = manager(world.database.url()).await;
    let longest = "~".repeat(256);
    let mut session = world.session().await;
    for call in [
        "CALL fenced_acquire('strange', CONCAT(x'01', '\\n\"%'), x'00', 86400000, 0, 'c', 0,
           CONCAT(_utf8mb4 x'c29be280a8e280ae', REPEAT(x'5c', 1016)), NULL, NULL, NULL)",
        "CALL fenced_acquire(REPEAT('~', 256), REPEAT('🔒', 64), REPEAT('a', 256), 86400000, 0,
           'c', 0, NULL, NULL, NULL, NULL)",
        "CALL fenced_acquire('broken', 'h', 'a', 86400000, 0, 'c', 0, NULL, NULL, NULL, NULL)",
    ] {
        session.execute(sqlx::raw_sql(call)).await.unwrap();
    }
    let broken = "UPDATE fenced_lease SET token = -1 WHERE resource = 'broken'";
    world.owner.execute(broken).await.unwrap();
    let names = async || {
        let listed = locks.list().await.unwrap();
        let mut names: Vec<_> = listed.iter().map(|one| one.resource.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names().await, ["strange", longest.as_str()]);
    for name in ["strange", longest.as_str()] {
        let seen = locks.inspect(&named(name)).await.unwrap();
        let holder = seen.holder.unwrap();
        assert_eq!(holder.fingerprint.len(), 16);
        let note = holder.metadata.map(|note| note.to_string());
        assert!(!note.unwrap_or_default().contains(char::is_control));
        locks.force_release(&named(name)).await.unwrap();
    }
    assert_eq!(names().await, Vec::<String>::new());
}

on_each_server!(
    the_documented_rights_are_enough_to_lock_and_end_no_other_lease,
    a_user_reads_no_table_and_writes_none,
    each_argument_is_bounded,
    no_setting_of_a_session_moves_the_clock_or_ends_a_lease,
    a_call_in_a_transaction_of_the_caller_is_refused_and_leaves_it_alone,
    a_table_that_hides_ours_claims_no_token_that_is_far_ahead,
    no_table_has_what_a_holder_presents,
    one_row_hides_no_other_from_a_list
);
