//! Users who may use the objects of the database, and create none.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    project::tracked_files,
    servers::{MySqlServer, until},
};
use fenced_jobs::JobSlots;
use fenced_store::{
    FenceError, FencedStore, Forget, MySqlFencedStore, MySqlTxOptions, NotReady, Rights,
    admin::AdminError,
};
use lock_core::ResourceName;
use sqlx::{AssertSqlSafe, Executor, MySqlPool, mysql::MySqlConnectOptions};

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, SqlHarness, assert_kind, fenced_add, fresh, grant},
    servers::wrong_books_are_an_error,
};

/// A user who may do everything with the application's own table, and so far nothing with our
/// tables.
struct User<S> {
    world: MySqlStore<S>,
    store: MySqlFencedStore,
    name: String,
}

impl<S: MySqlServer> User<S> {
    async fn create() -> Self {
        let world: MySqlStore<S> = fresh().await;
        let store = world.store_of_user_on("accounts").await;
        let quoted = "SELECT CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";
        let name = sqlx::query_scalar(quoted).fetch_one(store.pool()).await;
        let name = name.unwrap();
        Self { world, store, name }
    }

    async fn as_documented() -> Self {
        let user = Self::create().await;
        for grant in user.documented() {
            user.as_owner(grant).await;
        }
        user
    }

    /// The statements that docs/operations/rights.md has for the user of an application.
    fn documented(&self) -> BTreeSet<String> {
        let files = tracked_files(Some("md"));
        let mut files = files.iter();
        let page = files.find(|file| file.path.ends_with("docs/operations/rights.md"));
        let (_, chapter) = page.unwrap().text.split_once("## In MariaDB").unwrap();
        let (_, block) = chapter.split_once("```sql\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        let lines = block.lines().map(|line| line.trim_end_matches(';'));
        lines
            .map(|line| line.replace("app@'%'", &self.name))
            .collect()
    }

    async fn as_owner(&self, statement: String) {
        let pool = self.world.store().pool();
        pool.execute(AssertSqlSafe(statement)).await.unwrap();
    }

    /// The missing right, and the statement that gives it.
    async fn missing(&self, rights: Rights) -> Option<(String, String)> {
        match self.store.check(rights).await {
            Ok(()) => None,
            Err(FenceError::NotReady(NotReady::RightMissing { what, grant, .. })) => {
                Some((what, grant))
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Executes the statement that each error names until there is no error. Returns the executed
    /// statements.
    async fn do_as_told(&self, rights: Rights) -> BTreeSet<String> {
        let mut granted = BTreeSet::new();
        while let Some((what, grant)) = self.missing(rights).await {
            self.as_owner(grant.clone()).await;
            assert!(granted.insert(grant), "{what}");
        }
        granted
    }
}

async fn the_documented_rights_are_enough_for_a_user<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    user.store.migrate().await.unwrap();
    user.store.check(Rights::ClaimAndWrite).await.unwrap();
    let limit = MySqlTxOptions::default().lock_timeout(Some(Duration::from_secs(1)));
    let store = user.store.clone().with_options(limit);
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    store.settle(&old).await.unwrap();

    // The user may end its own sessions, too.
    let _open = store.begin(&old).await.unwrap();
    store.claim(&new).await.unwrap();
    let mark = store.high_water(new.resource()).await.unwrap().unwrap();
    assert_eq!(mark.token(), new.token());
    let stale = store.begin(&old).await.unwrap_err();
    assert_kind!(stale, Stale);
}

async fn the_error_names_the_missing_right_of_a_user_and_how_to_give_it<S: MySqlServer>() {
    let user = User::<S>::create().await;
    let documented = user.documented();
    assert_eq!(user.do_as_told(Rights::ClaimAndWrite).await, documented);
    for grant in &documented {
        let words: Vec<&str> = grant.split(' ').collect();
        let on = words.iter().position(|word| *word == "ON").unwrap();
        let table = words[on + 1];
        for verb in words[1..on].iter().map(|verb| verb.trim_end_matches(',')) {
            user.as_owner(format!("REVOKE {verb} ON {table} FROM {}", user.name))
                .await;
            let missing = user.missing(Rights::ClaimAndWrite).await;
            assert_eq!(missing, Some((format!("{verb} on {table}"), grant.clone())));
            user.as_owner(grant.clone()).await;
        }
    }
    assert_eq!(user.missing(Rights::ClaimAndWrite).await, None);
}

/// The user writes, and another role claims.
/// Catches: a write that needs the right to claim.
async fn a_user_may_be_let_write_and_not_claim<S: MySqlServer>() {
    let user = User::<S>::create().await;
    let granted = user.do_as_told(Rights::Write).await;
    assert!(granted.contains(&format!(
        "GRANT SELECT ON fenced_high_water_mark TO {}",
        user.name
    )));
    assert!(
        !granted.iter().any(|grant| grant.contains("issuer")),
        "{granted:?}"
    );
    let grant = grant("account:42", 33);
    assert!(user.store.claim(&grant).await.is_err());
    assert!(user.missing(Rights::ClaimAndWrite).await.is_some());
    user.world.store().claim(&grant).await.unwrap();
    let mut tx = user.store.begin(&grant).await.unwrap();
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

/// Catches: a check that looks only at the rights of the user, and not at those of its roles.
async fn rights_that_come_with_a_role_count<S: MySqlServer>() {
    let mut user = User::<S>::create().await;
    let role = format!("r{:08x}", rand::random::<u32>());
    user.as_owner(format!("CREATE ROLE {role}")).await;
    for grant in user.documented() {
        user.as_owner(grant.replace(&user.name, &role)).await;
    }
    user.as_owner(format!("GRANT {role} TO {}", user.name))
        .await;
    assert!(user.missing(Rights::Write).await.is_some());
    user.as_owner(format!(
        "SET DEFAULT ROLE {role} {} {}",
        on::<S, _>("FOR", "TO"),
        user.name
    ))
    .await;
    // A role becomes active when a session begins.
    let options = user.store.pool().connect_options();
    let pool = MySqlPool::connect_lazy_with(MySqlConnectOptions::clone(&options));
    user.store = FencedStore::new(pool);
    assert_eq!(user.missing(Rights::ClaimAndWrite).await, None);
}

async fn a_user_who_may_create_nothing_gets_an_error_about_a_wrong_schema<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    let as_owner = async |statement: &'static str| user.as_owner(statement.to_owned()).await;
    wrong_books_are_an_error::<MySqlStore<S>>(&user.store, as_owner).await;
    // A user who may read everything, in a database without our tables.
    let world = MySqlStore::<S>::unmigrated().await;
    let store = world.store_of_user("").await;
    let missing = store.check(Rights::Write).await.unwrap_err();
    assert_kind!(missing, NotMigrated);
    let refused = store.migrate().await.unwrap_err();
    assert_kind!(refused, Migration);
}

/// A process that applies a migration notes its beginning and its end, and holds a lock meanwhile.
/// Catches: a check that takes a migration under way for a broken one.
async fn a_migration_that_is_under_way_is_waited_for<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    let pool = user.world.store().pool();
    let mut migrating = pool.acquire().await.unwrap();
    let begin = "SELECT GET_LOCK(CONCAT('fenced_store:', LEFT(SHA2(DATABASE(), 256), 32)), 0);
                 UPDATE _fenced_migrations SET success = FALSE WHERE version = 1";
    migrating.execute(sqlx::raw_sql(begin)).await.unwrap();
    let end = async {
        until("the check waits", async || {
            let waiting = format!(
                "SELECT COUNT(*) FROM {} WHERE db = DATABASE() AND state = 'User lock'",
                S::SESSIONS
            );
            let waiting = sqlx::query_scalar::<_, i64>(AssertSqlSafe(waiting));
            waiting.fetch_one(pool).await.unwrap() == 1
        })
        .await;
        let end = "UPDATE _fenced_migrations SET success = TRUE; DO RELEASE_ALL_LOCKS()";
        migrating.execute(sqlx::raw_sql(end)).await.unwrap();
    };
    let (checked, ()) = tokio::join!(user.store.check(Rights::ClaimAndWrite), end);
    checked.unwrap();
    let grant = grant("account:42", 33);
    user.store.claim(&grant).await.unwrap();
    fenced_add(&user.world, &grant).await.unwrap();
}

/// The server is switched to read only for all sessions, or for sessions that begin from now on.
async fn a_server_that_takes_no_writes_is_not_writable<S: MySqlServer>() {
    let server = S::start().await;
    let root = MySqlPool::connect(server.url()).await.unwrap();
    for statement in [
        "CREATE DATABASE bank",
        "CREATE USER bank@'127.0.0.1' IDENTIFIED BY 'sesame'",
        "GRANT ALL ON bank.* TO bank@'127.0.0.1'",
    ] {
        root.execute(statement).await.unwrap();
    }
    let options: MySqlConnectOptions = server.url().parse().unwrap();
    let options = options.username("bank").password("sesame").database("bank");
    let connect = || FencedStore::new(MySqlPool::connect_lazy_with(options.clone()));
    let store = connect();
    let missing = store.check_writable().await.unwrap_err();
    assert_kind!(missing, NotMigrated);
    store.migrate().await.unwrap();
    let resource = ResourceName::new("account:42").unwrap();
    for (switch, store) in [
        ("read_only", &store),
        (
            on::<S, _>("tx_read_only", "transaction_read_only"),
            &connect(),
        ),
    ] {
        let set = |on: u8| AssertSqlSafe(format!("SET GLOBAL {switch} = {on}"));
        root.execute(set(1)).await.unwrap();
        let refused = store.check_writable().await.unwrap_err();
        assert!(
            matches!(refused, FenceError::NotReady(NotReady::ReadOnly { .. })),
            "{switch}: {refused:?}"
        );
        // The control: it can be read.
        store.high_water(&resource).await.unwrap();
        root.execute(set(0)).await.unwrap();
        connect().check_writable().await.unwrap();
    }
}

/// A full disk shows only at a write.
async fn a_probe_of_the_least_rights_writes_and_leaves_nothing<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    let deleted = async || -> (String, String) {
        let rows = "SHOW GLOBAL STATUS LIKE 'Handler_delete'";
        sqlx::query_as(rows)
            .fetch_one(user.world.store().pool())
            .await
            .unwrap()
    };
    let before = deleted().await;
    user.store.check_writable().await.unwrap();
    assert_ne!(deleted().await, before);
    let notes = "SELECT count(*) FROM fenced_open_transaction";
    let notes: i64 = sqlx::query_scalar(notes)
        .fetch_one(user.world.store().pool())
        .await
        .unwrap();
    assert_eq!(notes, 0);
}

/// A user of an application, who may write the tables of jobs, writes such a job in a session that
/// checks nothing.
/// Catches: a row that SQL can make and that keeps all others from being listed.
async fn a_job_with_any_content_can_be_listed<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    for table in ["fenced_job_run", "fenced_forgotten_job"] {
        let rights = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO");
        user.as_owner(format!("{rights} {}", user.name)).await;
    }
    let mut session = user.store.pool().acquire().await.unwrap();
    for statement in [
        on::<S, _>("SET check_constraint_checks = OFF", "DO 0"),
        "SET sql_mode = ''",
        "INSERT INTO fenced_job_run (job, slot, done_token) VALUES ('a', 'a', 0), ('a', 'b', -1),
           ('a', 'c', 9223372036854775807)",
        "INSERT INTO fenced_job_run (job, slot, done_token, done_at) VALUES ('b', 'a', 1, 0)",
        "INSERT INTO fenced_job_run (job, slot, steps, attempts, retry_at, last_error)
           VALUES ('b', 'b', -1, 9223372036854775807, '2038-01-19', CONCAT('a\nb', x'1B', '[2J'))",
        "INSERT INTO fenced_job_run (job, slot) VALUES ('', ''), (CONCAT('a', x'00'), ' '),
           (CONCAT('a', x'1B'), 'a\nb'), ('zoe', 'ok')",
        "INSERT INTO fenced_job_run (job, slot, progress, last_error)
           VALUES ('long', 'a', REPEAT('x', 3000000), REPEAT('y', 60000))",
    ] {
        session.execute(statement).await.unwrap();
    }
    let slots = user.store.job_slots(None, 100).await.unwrap();
    let listed = |job: &str| slots.iter().filter(|slot| slot.job == job).count();
    assert_eq!((slots.len(), listed("a"), listed("zoe")), (10, 3, 1));
    for slot in &slots {
        let progress = slot.state.progress.as_deref().unwrap_or_default();
        assert!(progress.len() <= 10_000, "{}", progress.len());
    }
    let whole = user.store.job_slot("long", "a").await.unwrap();
    assert_eq!(whole.progress.unwrap().len(), 3_000_000);
}

/// Catches: a mark that keeps administrators from handing the others over.
async fn a_mark_has_names_and_a_token<S: MySqlServer>() {
    let user = User::<S>::as_documented().await;
    let mut session = user.store.pool().acquire().await.unwrap();
    for (resource, token, issuer) in [
        ("''", "1", "'redis'"),
        ("'two words'", "1", "'redis'"),
        ("CONCAT('line', x'0A')", "1", "'redis'"),
        ("CONCAT('back', x'5C')", "1", "'redis'"),
        ("x'72E9'", "1", "'redis'"),
        ("_ascii x'72E9'", "1", "'redis'"),
        ("'r'", "1", "x'72E9'"),
        ("'quo\"te'", "1", "'redis'"),
        ("REPEAT('x', 257)", "1", "'redis'"),
        ("'r'", "0", "'redis'"),
        ("'r'", "1000000000000000", "'redis'"),
        ("'r'", "1", "''"),
        ("'r'", "1", "'a/b'"),
        ("'r'", "1", "CONCAT('redis', x'0A')"),
    ] {
        let insert = format!(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
             VALUES ({resource}, {token}, '', {issuer})"
        );
        let refused = session.execute(AssertSqlSafe(insert.clone())).await;
        assert!(refused.is_err(), "{insert}");
    }
    // The control.
    let mark = "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
        VALUES ('job:[a]~!', 999999999999999, '', 'redis-eu.1:prod_x')";
    session.execute(mark).await.unwrap();
    let resource = ResourceName::new("job:[a]~!").unwrap();
    assert!(user.store.high_water(&resource).await.unwrap().is_some());
}

/// The longest hold and the floor are in the same row.
/// Catches: a user who keeps idle marks of all resources from being forgotten, or a right that is
/// wider than this statement needs.
async fn only_a_user_with_the_right_to_it_states_the_longest_hold<S: MySqlServer>() {
    const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    let user = User::<S>::as_documented().await;
    let (own, owner) = (&user.store, user.world.store());
    let hourly = Forget::older_than(Duration::from_secs(60 * 60));
    let grant = match own.state_longest_hold(YEAR).await.unwrap_err() {
        AdminError::Store(FenceError::NotReady(NotReady::RightMissing { grant, .. })) => grant,
        other => panic!("{other:?}"),
    };
    owner.forget_marks(&hourly).await.unwrap();

    user.as_owner(grant).await;
    own.state_longest_hold(YEAR).await.unwrap();
    let refused = owner.forget_marks(&hourly).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::NotForgettable { .. }),
        "{refused:?}"
    );
    let lower = "UPDATE fenced_forgotten SET marks = 0";
    assert!(own.pool().execute(lower).await.is_err(), "{lower}");
}

on_both!(
    the_documented_rights_are_enough_for_a_user,
    the_error_names_the_missing_right_of_a_user_and_how_to_give_it,
    a_user_may_be_let_write_and_not_claim,
    rights_that_come_with_a_role_count,
    a_user_who_may_create_nothing_gets_an_error_about_a_wrong_schema,
    a_migration_that_is_under_way_is_waited_for,
    a_server_that_takes_no_writes_is_not_writable,
    a_probe_of_the_least_rights_writes_and_leaves_nothing,
    a_job_with_any_content_can_be_listed,
    a_mark_has_names_and_a_token,
    only_a_user_with_the_right_to_it_states_the_longest_hold,
);
