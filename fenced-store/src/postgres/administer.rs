//! Administrators' orders. Each is a call of an SQL function.

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use serde::Deserialize;
use sqlx::{PgConnection, Postgres};

use super::{calls::milliseconds, errors::detail_of};
use crate::{
    FenceError,
    admin::{
        AdminError,
        order::{Administer, Order},
    },
    dialect::{
        Errors, Queries,
        Value::{Number, Text},
        literal::literal,
    },
};

/// Carries out orders by calling the SQL functions.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct ByFunctions;

impl Administer<Postgres> for ByFunctions {
    fn resources_of(issuer: &Issuer, after: &str, count: usize) -> String {
        let (issuer, after) = (literal(issuer.as_str()), literal(after));
        format!("SELECT fenced.resources_of_issuer({issuer}, {after}, {count})")
    }

    fn status(of: &Issuer) -> String {
        format!(
            "SELECT * FROM fenced.handover_status({})",
            literal(of.as_str())
        )
    }

    fn marks_of_others(of: &Issuer) -> String {
        format!(
            "SELECT * FROM fenced.marks_of_others({})",
            literal(of.as_str())
        )
    }

    async fn carry_out(
        connection: &mut PgConnection,
        lock_timeout: Option<Duration>,
        order: &Order,
    ) -> Result<Option<Issuer>, AdminError> {
        let lock_timeout = milliseconds(lock_timeout);
        let (call, values) = match order {
            Order::ChangeIssuer(seal) => (
                format!("seal_issuer($1, $2, $3, {lock_timeout})"),
                seal.texts().to_vec(),
            ),
            Order::SealMark(seal, floor, resource) => {
                let [from, to, reason] = seal.texts();
                let (resource, above) = (Text(resource.as_str()), i64::from(*floor) - 1);
                (
                    format!("seal_mark($1, $2, $3, $4, $5, {lock_timeout})"),
                    vec![resource, from, to, Number(above), reason],
                )
            }
            Order::SealFloor(seal, floor) => {
                let [from, to, reason] = seal.texts();
                let above = Number(i64::from(*floor) - 1);
                let call = "seal_floor($1, $2, $3, $4)".to_owned();
                (call, vec![from, to, above, reason])
            }
            Order::LowerFloor(order) => {
                let (expected, to) = order.numbers();
                let reason = Text(order.reason.as_str());
                let call = "reset_floor($1, $2, $3)".to_owned();
                (call, vec![Number(expected), Number(to), reason])
            }
            Order::Reset(reset) => {
                let lowers = reset.to() < reset.expected();
                let (expected, to) = (reset.expected().into(), reset.to().into());
                let (resource, reason) = (reset.resource().as_str(), reset.reason().as_str());
                (
                    format!("reset_high_water($1, $2, $3, $4, {lowers}, {lock_timeout})"),
                    vec![Text(resource), Number(expected), Number(to), Text(reason)],
                )
            }
        };
        let call = Postgres::statement(&format!("SELECT fenced.{call}"), &values);
        let called = Postgres::run(connection, call.map_err(FenceError::from)?).await;
        called.map(|_| None).or_else(refusal)
    }
}

/// Translates a refusal: the store has another issuer, or a mark is not where the order expects it.
fn refusal(source: sqlx::Error) -> Result<Option<Issuer>, AdminError> {
    if let Some(OtherIssuer { current }) = detail_of(&source, "FN021") {
        return Ok(Some(current));
    }
    if let Some(Floor { expected, current }) = detail_of(&source, "FN020") {
        return Err(AdminError::FloorNotAsExpected { expected, current });
    }
    Err(match detail_of(&source, "FN020") {
        Some(Mark {
            resource,
            expected,
            current,
        }) => AdminError::NotAsExpected {
            resource,
            expected,
            current,
        },
        None => Postgres::of_our_call(source).into(),
    })
}

#[derive(Deserialize)]
struct Mark {
    resource: ResourceName,
    expected: FencingToken,
    current: Option<FencingToken>,
}

/// A floor, which belongs to no resource.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    expected: FencingToken,
    current: u64,
}

#[derive(Deserialize)]
struct OtherIssuer {
    current: Issuer,
}
