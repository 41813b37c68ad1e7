//! A gateway whose role may use the objects of the database, and create none.

use std::str::FromStr;

use e2e::servers::{PostgresDatabase, postgres_database};
use reqwest::Method;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions,
};

use crate::{
    exit_codes::complaint,
    gateway::{Gateway, patient, send},
};

/// The rights that docs/operations/rights.md gives a gateway. The first right is for objects that
/// `serve` made itself, when a role with that right started it.
const DOCUMENTED: &str = "
    GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_idempotency_keys TO gateway;
    GRANT USAGE ON SCHEMA fenced TO gateway;
    REVOKE EXECUTE ON FUNCTION fenced.claim FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION fenced.claim TO gateway;";

/// A role of this database. Its name is unique, because roles belong to the whole server.
struct Role {
    name: String,
    url: String,
}

impl Role {
    async fn create(database: &PostgresDatabase) -> Self {
        let options = PgConnectOptions::from_str(database.url()).unwrap();
        let name = format!("gateway_{}", options.get_database().unwrap());
        let create = format!("CREATE ROLE {name} LOGIN PASSWORD 'sesame'");
        as_owner(database, create).await;
        let options = options.username(&name).password("sesame");
        let url = options.to_url_lossy().to_string();
        Self { name, url }
    }

    /// Statements of the owner that are about this role.
    async fn give(&self, database: &PostgresDatabase, rights: &str) {
        let to_me = format!("TO {};", self.name);
        let from_me = format!("FROM {};", self.name);
        as_owner(
            database,
            rights
                .replace("TO gateway;", &to_me)
                .replace("FROM gateway;", &from_me),
        )
        .await;
    }
}

async fn as_owner(database: &PostgresDatabase, statements: String) {
    let mut owner = PgConnection::connect(database.url()).await.unwrap();
    let statements = sqlx::raw_sql(AssertSqlSafe(statements));
    owner.execute(statements).await.unwrap();
}

#[tokio::test]
async fn the_documented_rights_are_enough_for_a_gateway() {
    let database = postgres_database().await;
    drop(Gateway::start_alone(&["--store", database.url()]).await);
    let role = Role::create(&database).await;
    role.give(&database, DOCUMENTED).await;

    let gateway = Gateway::start_alone(&["--store", &role.url]).await;
    let acquire = gateway.request(Method::POST, "/v1/leases/account:1");
    let acquire = acquire.header("Idempotency-Key", "0123456789abcdef");
    let granted = send(acquire.json(&patient(60_000))).await;
    assert_eq!(granted.status, 201, "{granted:?}");

    // A role that may make a schema, but nothing in the schema of the store, has no fewer rights.
    let url = PgConnectOptions::from_str(database.url()).unwrap();
    let name = url.get_database().unwrap();
    let create = format!("GRANT CREATE ON DATABASE {name} TO gateway;");
    role.give(&database, &create).await;
    drop(Gateway::start_alone(&["--store", &role.url]).await);
}

/// Each time one part is wrong, is reported, and is mended.
#[tokio::test]
async fn a_gateway_that_may_create_nothing_does_not_start_unless_all_is_there() {
    let database = postgres_database().await;
    drop(Gateway::start_alone(&["--store", database.url()]).await);
    let role = Role::create(&database).await;
    role.give(&database, DOCUMENTED).await;
    let may = format!("TO {}", role.name);
    let wrong = [
        (
            "DELETE FROM fenced._migrations",
            "migration 1 (marks) is missing".to_owned(),
            "INSERT INTO fenced._migrations SELECT * FROM kept",
        ),
        (
            "INSERT INTO fenced._migrations SELECT 99, 'later', installed_on, true, checksum, 0 \
             FROM kept LIMIT 1",
            "migration 99 (later), and this version knows no migration after".to_owned(),
            "DELETE FROM fenced._migrations WHERE version = 99",
        ),
        (
            "UPDATE fenced._migrations SET success = false",
            "migration 1 (marks) was applied half way".to_owned(),
            "UPDATE fenced._migrations SET success = true",
        ),
        (
            "REVOKE USAGE ON SCHEMA fenced FROM gateway;",
            format!("GRANT USAGE ON SCHEMA fenced {may}"),
            "GRANT USAGE ON SCHEMA fenced TO gateway;",
        ),
        (
            "REVOKE EXECUTE ON FUNCTION fenced.claim FROM gateway;",
            format!("GRANT EXECUTE ON ROUTINE fenced.claim {may}"),
            "GRANT EXECUTE ON FUNCTION fenced.claim TO gateway;",
        ),
        (
            "REVOKE DELETE ON gateway_idempotency_keys FROM gateway;",
            format!("GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_idempotency_keys {may}"),
            "GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_idempotency_keys TO gateway;",
        ),
    ];
    let keep = "CREATE TABLE kept AS SELECT * FROM fenced._migrations";
    as_owner(&database, keep.to_owned()).await;
    let serve = ["serve", "--addr", "127.0.0.1:0", "--store", &role.url];
    for (make, expected, mend) in wrong {
        role.give(&database, make).await;
        let said = complaint(&serve, 3);
        assert!(said.contains(&expected), "{make}: {said}");
        role.give(&database, mend).await;
    }
    drop(Gateway::start_alone(&["--store", &role.url]).await);
}
