//! The administrator's orders, which are SQL functions.

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use serde::Deserialize;
use sqlx::{PgConnection, Postgres};

use super::{
    calls::milliseconds,
    error::{detail_of, of_our_call},
};
use crate::{
    FenceError,
    admin::{AdminError, Reset, Seal, dialect::Administer},
    literal::literal,
    queries::Queries,
    statement::Value::{self, Number, Text},
};

/// Carries out orders by calling the SQL functions.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct ByFunctions;

impl Administer<Postgres> for ByFunctions {
    fn marks_of(issuer: &Issuer, after: &str, count: usize) -> String {
        let (issuer, after) = (literal(issuer.as_str()), literal(after));
        format!("SELECT fenced.marks_of({issuer}, {after}, {count})")
    }

    fn survey(of: &Issuer) -> String {
        format!("SELECT * FROM fenced.survey({})", literal(of.as_str()))
    }

    fn marks_left(of: &Issuer) -> String {
        format!("SELECT * FROM fenced.marks_left({})", literal(of.as_str()))
    }

    async fn change_issuer(
        connection: &mut PgConnection,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> Result<Option<Issuer>, FenceError> {
        let lock_timeout = milliseconds(lock_timeout);
        let call = format!("SELECT fenced.seal_issuer($1, $2, $3, {lock_timeout})");
        let values = [
            Text(seal.from.as_str()),
            Text(seal.to.as_str()),
            Text(seal.reason.as_str()),
        ];
        other_issuer(order(connection, call, &values).await)
    }

    async fn seal_mark(
        connection: &mut PgConnection,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> Result<Option<Issuer>, FenceError> {
        let lock_timeout = milliseconds(lock_timeout);
        let call = format!("SELECT fenced.seal_mark($1, $2, $3, $4, $5, {lock_timeout})");
        let values = [
            Text(resource.as_str()),
            Text(seal.from.as_str()),
            Text(seal.to.as_str()),
            Number(i64::from(floor) - 1),
            Text(seal.reason.as_str()),
        ];
        other_issuer(order(connection, call, &values).await)
    }

    async fn reset(
        connection: &mut PgConnection,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> Result<(), AdminError> {
        let call = format!(
            "SELECT fenced.reset_high_water($1, $2, $3, $4, {}, {})",
            reset.to() < reset.expected(),
            milliseconds(lock_timeout)
        );
        let values = [
            Text(reset.resource().as_str()),
            Number(reset.expected().into()),
            Number(reset.to().into()),
            Text(reset.reason().as_str()),
        ];
        order(connection, call, &values).await.map_err(unexpected)
    }
}

async fn order(
    connection: &mut PgConnection,
    call: String,
    values: &[Value<'_>],
) -> Result<(), sqlx::Error> {
    let call = Postgres::statement(call, values)?;
    Postgres::run(connection, call).await.map(drop)
}

/// The issuer because of which a function has refused an order.
fn other_issuer(called: Result<(), sqlx::Error>) -> Result<Option<Issuer>, FenceError> {
    let Err(source) = called else {
        return Ok(None);
    };
    match detail_of(&source, "FN021") {
        Some(OtherIssuer { current }) => Ok(Some(current)),
        None => Err(of_our_call(source)),
    }
}

/// Translates the refusal to set a mark.
fn unexpected(source: sqlx::Error) -> AdminError {
    match detail_of(&source, "FN020") {
        Some(Mark {
            resource,
            expected,
            current,
        }) => AdminError::NotAsExpected {
            resource,
            expected,
            current,
        },
        None => of_our_call(source).into(),
    }
}

#[derive(Deserialize)]
struct Mark {
    resource: ResourceName,
    expected: FencingToken,
    current: Option<FencingToken>,
}

#[derive(Deserialize)]
struct OtherIssuer {
    current: Issuer,
}
