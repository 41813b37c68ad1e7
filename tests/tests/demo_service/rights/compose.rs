//! The roles of `deploy/compose.yaml`, in a database of its own.

use std::{fs, str::FromStr};

use e2e::{project::root, servers::postgres_database};
use reqwest::Method;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions,
};

use crate::{
    exit_codes::run,
    gateway::{Gateway, patient, send},
};

/// The statements between two lines of the file, for roles and a database of these names, because a
/// role belongs to the whole server.
fn statements(compose: &str, from: &str, to: &str, database: &str) -> String {
    let statements = compose
        .split_once(from)
        .unwrap()
        .1
        .split_once(to)
        .unwrap()
        .0;
    statements
        .replace("DATABASE palisade", &format!("DATABASE {database}"))
        .replace("TO gateway", &format!("TO gateway_{database}"))
        .replace("ROLE gateway", &format!("ROLE gateway_{database}"))
        .replace("fence_owner", &format!("owner_{database}"))
        .replace(":'owner'", "'sesame'")
        .replace(":'gateway'", "'sesame'")
}

async fn as_role(url: &str, statements: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
    connection.execute(statements).await.map(drop)
}

/// Catches: a gateway that logs in as a superuser, or lacks a right that it needs.
#[tokio::test]
async fn the_gateway_of_compose_can_serve_and_can_do_nothing_else_in_its_database() {
    let compose = fs::read_to_string(root().join("deploy/compose.yaml")).unwrap();
    let database = postgres_database().await;
    let options = PgConnectOptions::from_str(database.url()).unwrap();
    let name = options.get_database().unwrap().to_owned();
    let url = |role: &str| {
        let options = options.clone().username(&format!("{role}_{name}"));
        options.password("sesame").to_url_lossy().to_string()
    };
    let (owner, app) = (url("owner"), url("gateway"));

    let roles = statements(&compose, "<<'SQL'\n", "      SQL\n", &name);
    as_role(database.url(), &roles).await.unwrap();
    for _again in 0..2 {
        let applied = run(&["migrations", "apply", "--store", &owner]);
        assert!(applied.status.success(), "{applied:?}");
    }
    let rights = statements(&compose, "      - >-\n", "    depends_on", &name);
    as_role(&owner, &rights).await.unwrap();

    let gateway = Gateway::start_alone(&["--store", &app]).await;
    let acquire = gateway.request(Method::POST, "/v1/leases/account:1");
    let acquire = acquire.header("Idempotency-Key", "0123456789abcdef");
    let granted = send(acquire.json(&patient(60_000))).await;
    assert_eq!(granted.status, 201, "{granted:?}");
    let token = granted.body["fencing_token"].as_str().unwrap();
    let renewed = gateway.renew("account:1", token).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");

    for attack in [
        "UPDATE fenced.high_water_mark SET token = 1",
        "DELETE FROM fenced.high_water_mark",
        "SELECT * FROM fenced.lease",
        "SELECT fenced.force_release('account:1', 1)",
        "SELECT fenced.reset_floor(2, 1, 'why')",
        "SELECT fenced.seal_floor('postgres', 'postgres', 999999999999999, 'why')",
        "DELETE FROM fenced._migrations",
        "TRUNCATE gateway_idempotency_keys",
        "DROP TABLE gateway_idempotency_keys",
        "ALTER TABLE gateway_idempotency_keys DROP COLUMN request",
        "CREATE TABLE mine (id int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "COPY gateway_idempotency_keys TO PROGRAM 'true'",
        "SELECT pg_read_file('PG_VERSION')",
    ] {
        let refused = as_role(&app, attack).await.expect_err(attack);
        let code = refused
            .as_database_error()
            .and_then(|it| it.code().map(String::from));
        let is_refused = code.as_deref() == Some("42501");
        assert!(is_refused, "{attack}: {refused}");
    }
    let released = gateway.release("account:1", token).await;
    assert_eq!(released.status, 204, "{released:?}");
}
