//! The roles of docs/operations/rights.md, made by the statements of that page.

use std::str::FromStr;

use e2e::project::tracked_files;
use fenced_store::{FencedStore, PgFencedStore};
use sqlx::{
    AssertSqlSafe, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, SqlHarness},
};

/// A database that `fence_owner` has migrated. `app` has the documented rights in it, and all
/// rights on its own table.
pub(crate) struct Roles {
    pub(crate) world: PostgresServer,
    pub(crate) database: String,
}

impl Roles {
    pub(crate) async fn as_documented() -> Self {
        let world = PostgresServer::unmigrated().await;
        let database: String = sqlx::query_scalar("SELECT current_database()::text")
            .fetch_one(world.store().pool())
            .await
            .unwrap();
        let [make_owner, let_in, ..] = documented();
        let admin = world.store().pool();
        run(admin, &database, &make_owner).await;
        let make_app = "CREATE ROLE app LOGIN PASSWORD 'sesame'; GRANT ALL ON accounts TO app";
        run(admin, &database, make_app).await;

        let owner = login(&world, &database, "fence_owner").await;
        FencedStore::new(owner.clone()).migrate().await.unwrap();
        run(&owner, &database, &let_in).await;
        Self { world, database }
    }

    /// Runs statements as the superuser. The statements have the documented names of roles and of
    /// the database.
    pub(crate) async fn as_admin(&self, statements: &str) {
        run(self.world.store().pool(), &self.database, statements).await;
    }

    /// A store whose sessions are those of a role.
    pub(crate) async fn store_of(&self, role: &str) -> PgFencedStore {
        FencedStore::new(login(&self.world, &self.database, role).await)
    }
}

/// The blocks of SQL in the chapter about rights.
pub(crate) fn documented() -> [String; 4] {
    let chapter = chapter();
    let mut blocks = chapter.split("```sql\n").skip(1).map(|rest| {
        let (block, _) = rest.split_once("```").unwrap();
        block.to_owned()
    });
    let found = [(); 4].map(|()| blocks.next().unwrap());
    assert_eq!(blocks.next(), None);
    found
}

/// The section of docs/operations/rights.md about rights in PostgreSQL.
pub(crate) fn chapter() -> String {
    let files = tracked_files(Some("md"));
    let operations = files
        .iter()
        .find(|file| file.path.ends_with("docs/operations/rights.md"));
    let (_, rest) = operations
        .unwrap()
        .text
        .split_once("## In Postgres\n")
        .unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The statements with other names of roles, because roles belong to the whole server, and each
/// test needs its own roles.
pub(crate) fn renamed(statements: &str, database: &str) -> String {
    let rename = |word: &str| match word {
        "bank" => database.to_owned(),
        "fence_owner" | "app" | "gateway" | "legacy" | "operator" => format!("{word}_{database}"),
        other => other.to_owned(),
    };
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    statements
        .split_inclusive(is_separator)
        .map(|piece| match piece.strip_suffix(is_separator) {
            Some(word) => rename(word) + &piece[word.len()..],
            None => rename(piece),
        })
        .collect()
}

async fn run(pool: &PgPool, database: &str, statements: &str) {
    let statements = AssertSqlSafe(renamed(statements, database));
    pool.execute(sqlx::raw_sql(statements)).await.unwrap();
}

async fn login(world: &PostgresServer, database: &str, role: &str) -> PgPool {
    let options = PgConnectOptions::from_str(world.url()).unwrap();
    let options = options
        .username(&renamed(role, database))
        .password("sesame");
    let pool = PgPoolOptions::new().max_connections(20);
    pool.connect_with(options).await.unwrap()
}
