//! Administrators' orders in databases whose own functions cannot hold them. The statements are the
//! same in all these databases.
//!
//! The first statement on a mark always changes the row, even if the order changes nothing in the
//! end. The change locks the row against claims and against transactions that share it. Only this
//! statement has to wait.

use std::time::Duration;

use lock_core::{FencingToken, Holder, Issuer, ResourceName};

use super::{
    AdminError, LowerFloor, Reset,
    order::{Administer, Order, Seal},
};
use crate::{
    dialect::{
        Value::{Number, Text},
        by_statements::{ByStatements, Wording},
        literal::literal,
    },
    rule::marks,
};

impl<DB: Wording> Administer<DB> for ByStatements {
    fn resources_of(issuer: &Issuer, after: &str, count: usize) -> String {
        format!(
            "SELECT resource FROM fenced_high_water_mark WHERE issuer = {} AND resource > {} \
             ORDER BY resource LIMIT {count}",
            literal(issuer.as_str()),
            literal(after),
        )
    }

    fn status(of: &Issuer) -> String {
        format!(
            "SELECT resource, token, \
               (SELECT COUNT(*) FROM fenced_high_water_mark WHERE issuer = {}) \
             FROM fenced_high_water_mark ORDER BY token DESC LIMIT 1",
            literal(of.as_str()),
        )
    }

    fn marks_of_others(of: &Issuer) -> String {
        format!(
            "SELECT issuer, COUNT(*) FROM fenced_high_water_mark WHERE issuer <> {} \
             GROUP BY issuer ORDER BY issuer LIMIT 1",
            literal(of.as_str()),
        )
    }

    async fn carry_out(
        connection: &mut DB::Connection,
        lock_timeout: Option<Duration>,
        order: &Order,
    ) -> Result<Option<Issuer>, AdminError> {
        let limit = DB::limit(lock_timeout);
        match order {
            Order::ChangeIssuer(seal) => change_issuer::<DB>(connection, &limit, seal).await,
            Order::SealMark(seal, floor, resource) => {
                seal_mark::<DB>(connection, &limit, seal, *floor, resource).await
            }
            Order::SealFloor(seal, floor) => {
                seal_floor::<DB>(connection, &limit, seal, *floor).await
            }
            Order::LowerFloor(order) => lower_floor::<DB>(connection, &limit, order).await,
            Order::Reset(order) => reset::<DB>(connection, &limit, order).await,
        }
    }
}

async fn change_issuer<DB: Wording>(
    connection: &mut DB::Connection,
    limit: &str,
    seal: &Seal,
) -> Result<Option<Issuer>, AdminError> {
    let [from, to, reason] = seal.texts();
    // The lock is exclusive, because two handovers that share the row here could not both change it
    // below.
    let first = format!(
        "{limit}INSERT INTO fenced_lock_service (only_row, name) \
             SELECT 1, ? FROM (SELECT 1) AS one \
             WHERE NOT EXISTS (SELECT 1 FROM fenced_lock_service {})",
        DB::EXCLUSIVE,
    );
    DB::change(connection, &first, &[from]).await?;
    let change = format!("{limit}UPDATE fenced_lock_service SET name = ? WHERE name = ?");
    if DB::change(connection, &change, &[to, from]).await? == 0 {
        if DB::change(connection, &change, &[to, to]).await? == 1 {
            return Ok(None);
        }
        return Ok(marks::issuer::<DB>(connection).await?);
    }
    let note = format!(
        "INSERT INTO fenced_admin_log (done_by, action, from_issuer, to_issuer, reason) \
             VALUES ({}, 'seal', ?, ?, ?)",
        DB::WHO,
    );
    DB::change(connection, &note, &[from, to, reason]).await?;
    Ok(None)
}

async fn seal_mark<DB: Wording>(
    connection: &mut DB::Connection,
    limit: &str,
    seal: &Seal,
    floor: FencingToken,
    name: &ResourceName,
) -> Result<Option<Issuer>, AdminError> {
    let [from, to, reason] = seal.texts();
    let (above, resource) = (Number(i64::from(floor) - 1), Text(name.as_str()));
    let unknown_holder = Holder::random().kept_digest();
    // The issuer is compared, because another handover may have continued from here.
    let shut_out = format!(
        "{limit}UPDATE fenced_high_water_mark SET holder = ? WHERE resource = ? AND issuer = ? \
             AND EXISTS (SELECT 1 FROM fenced_lock_service WHERE name = ? {})",
        DB::SHARED,
    );
    let values = [Text(&unknown_holder), resource, from, to];
    if DB::change(connection, &shut_out, &values).await? == 0 {
        // The mark is sealed already, or another handover has continued from here.
        let current = marks::issuer::<DB>(connection).await?;
        return Ok(current.filter(|current| *current != seal.to));
    }
    let note = format!(
        "INSERT INTO fenced_admin_log \
               (done_by, action, resource, from_token, to_token, from_issuer, to_issuer, reason) \
             SELECT {}, 'seal mark', resource, token, \
                    CASE WHEN token < ? THEN ? ELSE token END, issuer, ?, ? \
             FROM fenced_high_water_mark WHERE resource = ?",
        DB::WHO,
    );
    DB::change(connection, &note, &[above, above, to, reason, resource]).await?;
    let raise = format!(
        "UPDATE fenced_high_water_mark \
             SET issuer = ?, token = CASE WHEN token < ? THEN ? ELSE token END, \
             claimed_at = {} WHERE resource = ?",
        DB::NOW,
    );
    DB::change(connection, &raise, &[to, above, above, resource]).await?;
    Ok(None)
}

/// A floor of 0 means that there is none, because no mark was forgotten yet.
async fn seal_floor<DB: Wording>(
    connection: &mut DB::Connection,
    limit: &str,
    seal: &Seal,
    floor: FencingToken,
) -> Result<Option<Issuer>, AdminError> {
    let [from, to, reason] = seal.texts();
    let above = Number(i64::from(floor) - 1);
    let note = format!(
        "{limit}INSERT INTO fenced_admin_log \
             (done_by, action, from_token, to_token, from_issuer, to_issuer, reason) \
             SELECT {}, 'seal mark', marks, ?, ?, ?, ? FROM fenced_forgotten \
             WHERE marks > 0 AND marks < ? {}",
        DB::WHO,
        DB::EXCLUSIVE,
    );
    DB::change(connection, &note, &[above, from, to, reason, above]).await?;
    let raise = format!(
        "{limit}UPDATE fenced_forgotten SET marks = ? WHERE marks > 0 AND marks < ? \
             AND EXISTS (SELECT 1 FROM fenced_lock_service WHERE name = ? {})",
        DB::SHARED,
    );
    DB::change(connection, &raise, &[above, above, to]).await?;
    let current = marks::issuer::<DB>(connection).await?;
    Ok(current.filter(|current| *current != seal.to))
}

async fn lower_floor<DB: Wording>(
    connection: &mut DB::Connection,
    limit: &str,
    order: &LowerFloor,
) -> Result<Option<Issuer>, AdminError> {
    let (expected, to) = order.numbers();
    let set = format!("{limit}UPDATE fenced_forgotten SET marks = ? WHERE marks = ?");
    if DB::change(connection, &set, &[Number(to), Number(expected)]).await? == 0 {
        let current = marks::floor::<DB>(connection).await?;
        return Err(AdminError::FloorNotAsExpected {
            expected: order.expected(),
            current: current.map_or(0, FencingToken::get),
        });
    }
    let note = format!(
        "INSERT INTO fenced_admin_log \
             (done_by, action, from_token, to_token, from_issuer, to_issuer, reason) \
             SELECT {}, 'reset mark', ?, ?, name, name, ? FROM fenced_lock_service",
        DB::WHO,
    );
    let reason = Text(order.reason.as_str());
    DB::change(connection, &note, &[Number(expected), Number(to), reason]).await?;
    Ok(None)
}

async fn reset<DB: Wording>(
    connection: &mut DB::Connection,
    limit: &str,
    reset: &Reset,
) -> Result<Option<Issuer>, AdminError> {
    let resource = Text(reset.resource().as_str());
    let (expected, to) = (Number(reset.expected().into()), Number(reset.to().into()));
    let unknown_holder = Holder::random().kept_digest();
    let set = format!(
        "{limit}UPDATE fenced_high_water_mark SET holder = ?, token = ?, claimed_at = {} \
             WHERE resource = ? AND token = ?",
        DB::NOW,
    );
    if DB::change(
        connection,
        &set,
        &[Text(&unknown_holder), to, resource, expected],
    )
    .await?
        == 0
    {
        let mark = marks::high_water::<DB>(connection, reset.resource()).await?;
        return Err(AdminError::NotAsExpected {
            resource: reset.resource().clone(),
            expected: reset.expected(),
            current: mark.map(|mark| mark.token()),
        });
    }
    let note = format!(
        "INSERT INTO fenced_admin_log \
               (done_by, action, resource, from_token, to_token, from_issuer, to_issuer, reason) \
             SELECT {}, 'reset mark', resource, ?, token, issuer, issuer, ? \
             FROM fenced_high_water_mark WHERE resource = ?",
        DB::WHO,
    );
    let reason = Text(reset.reason().as_str());
    DB::change(connection, &note, &[expected, reason, resource]).await?;
    Ok(None)
}
