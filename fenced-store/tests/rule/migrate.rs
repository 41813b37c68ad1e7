//! The tables of fenced-store are beside those of the application.

use fenced_store::{FenceError, FencedStore, Rights};
use tokio::task::JoinSet;

use super::{SqlHarness, fenced_add, fresh, grant};

/// Catches: two instances that migrate at once, or a migration that is not done once.
pub(crate) async fn migrations_run_again_and_at_once<H: SqlHarness>() {
    let world = H::unmigrated().await;
    let mut runs = JoinSet::new();
    for _ in 0..6 {
        let store = world.to_migrate().clone();
        runs.spawn(async move { store.migrate().await });
    }
    for run in runs.join_all().await {
        run.unwrap();
    }
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    world.to_migrate().migrate().await.unwrap();
    fenced_add(&world, &grant).await.unwrap();
}

/// Entries of the migrations table that keep this build from using a database.
pub(crate) struct WrongBooks {
    pub(crate) make: &'static str,
    /// A part of the error's text.
    told: String,
}

impl WrongBooks {
    pub(crate) fn all<H: SqlHarness>() -> [Self; 5] {
        let books = H::BOOKS;
        let wrong = |make: String, told: &str| Self {
            make: make.leak(),
            told: told.to_owned(),
        };
        let columns = "(version, description, success, checksum, execution_time)";
        let add = |values| format!("INSERT INTO {books} {columns} VALUES {values}");
        // The title of the last migration in the script is "-- 0007 name".
        let script = FencedStore::<H::Db>::migration_script();
        let last = script.lines().rfind(|line| line.starts_with("-- 0"));
        let known: i64 = last.unwrap()[3..7].parse().unwrap();
        let tables = match books {
            "fenced._migrations" => "the schemas fenced and fenced_guards",
            _ => "those whose names begin with fenced_ or _fenced_",
        };
        [
            wrong(
                format!("DELETE FROM {books}"),
                r#"Missing { version: 1, name: "marks" }"#,
            ),
            wrong(
                add("(99, 'later', TRUE, '', 0)"),
                &format!(r#"Newer {{ version: 99, name: "later", known: {known} }}"#),
            ),
            wrong(
                add("(99, 'half', FALSE, '', 0)"),
                &format!(r#"HalfApplied {{ version: 99, name: "half", table: "{books}" }}"#),
            ),
            wrong(
                format!("UPDATE {books} SET checksum = ''"),
                &format!(r#"Changed {{ version: 1, name: "marks", tables: "{tables}" }}"#),
            ),
            wrong(
                format!("UPDATE {books} SET description = 'fenced', checksum = ''"),
                &format!(r#"BeforeFirstRelease {{ name: "fenced", tables: "{tables}" }}"#),
            ),
        ]
    }

    /// Keeps the entries as they are, for [`undo`](Self::undo).
    pub(crate) fn keep<H: SqlHarness>() -> &'static str {
        let books = H::BOOKS;
        format!("CREATE TABLE {books}_kept AS SELECT * FROM {books}").leak()
    }

    pub(crate) fn undo<H: SqlHarness>() -> [&'static str; 2] {
        let books = H::BOOKS;
        [
            format!("DELETE FROM {books}").leak(),
            format!("INSERT INTO {books} SELECT * FROM {books}_kept").leak(),
        ]
    }

    /// Whether a role that owns the tables would try to make them once more.
    fn is_migrated(&self) -> bool {
        self.make.starts_with("DELETE")
    }

    pub(crate) fn assert_told(&self, result: Result<(), FenceError>) {
        match result.unwrap_err() {
            FenceError::NotReady(told) => assert_eq!(format!("{told:?}"), self.told),
            other => panic!("{}: {other:?}", self.make),
        }
    }
}

pub(crate) async fn the_schema_has_to_be_the_one_that_this_build_needs<H: SqlHarness>() {
    let world: H = fresh().await;
    let store = world.to_migrate();
    let by_hand = async |statement| {
        let mut connection = store.pool().acquire().await.unwrap();
        H::execute(&mut connection, statement).await.unwrap();
    };
    by_hand(WrongBooks::keep::<H>()).await;
    for wrong in WrongBooks::all::<H>() {
        store.check(Rights::ClaimAndWrite).await.unwrap();
        by_hand(wrong.make).await;
        wrong.assert_told(store.check(Rights::Write).await);
        if !wrong.is_migrated() {
            wrong.assert_told(store.migrate().await);
        }
        for statement in WrongBooks::undo::<H>() {
            by_hand(statement).await;
        }
        store.migrate().await.unwrap();
    }
}
