//! The statements. The first one on a mark always changes it, whatever the result: that locks its
//! row against transactions that share it, and against claims. Only this statement has to wait.

use std::time::Duration;

use lock_core::{FencingToken, Holder, ResourceName};
use sqlx::{Arguments, AssertSqlSafe, Encode, SqlSafeStr, Type};

use super::{Reset, Seal, Statement, Wording};

/// The value of a placeholder.
#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Number(i64),
}
use Value::{Number, Text};

/// Returns whether the issuer is changed, or already was.
pub(crate) async fn change_issuer<DB>(
    connection: &mut DB::Connection,
    lock_timeout: Option<Duration>,
    seal: &Seal,
) -> Result<bool, sqlx::Error>
where
    DB: Wording,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
{
    let (from, to) = (Text(seal.from.as_str()), Text(seal.to.as_str()));
    let limit = DB::limit(lock_timeout);
    // Two handovers that both shared the row here could not both change it below.
    let first = format!(
        "{limit}INSERT INTO fenced_lock_service (only_row, name) \
         SELECT 1, ? FROM (SELECT 1) AS one \
         WHERE NOT EXISTS (SELECT 1 FROM fenced_lock_service {})",
        DB::EXCLUSIVE,
    );
    run::<DB>(connection, &first, &[from]).await?;
    let change = format!("{limit}UPDATE fenced_lock_service SET name = ? WHERE name = ?");
    if run::<DB>(connection, &change, &[to, from]).await? == 0 {
        return Ok(run::<DB>(connection, &change, &[to, to]).await? == 1);
    }
    let note = format!(
        "INSERT INTO fenced_admin_log (done_by, action, from_issuer, to_issuer, reason) \
         VALUES ({}, 'seal', ?, ?, ?)",
        DB::WHO,
    );
    let reason = Text(seal.reason.as_str());
    run::<DB>(connection, &note, &[from, to, reason]).await?;
    Ok(true)
}

/// Returns whether the mark was sealed by this call.
pub(crate) async fn seal_mark<DB>(
    connection: &mut DB::Connection,
    lock_timeout: Option<Duration>,
    seal: &Seal,
    floor: FencingToken,
    resource: &ResourceName,
) -> Result<bool, sqlx::Error>
where
    DB: Wording,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
{
    let (from, to) = (Text(seal.from.as_str()), Text(seal.to.as_str()));
    let (above, resource) = (Number(i64::from(floor) - 1), Text(resource.as_str()));
    let nobody = Holder::random().digest();
    // Only for the service whose tokens the store accepts: another handover may have continued
    // from here.
    let shut_out = format!(
        "{}UPDATE fenced_high_water_mark SET holder = ? WHERE resource = ? AND issuer = ? \
         AND EXISTS (SELECT 1 FROM fenced_lock_service WHERE name = ? {})",
        DB::limit(lock_timeout),
        DB::SHARED,
    );
    if run::<DB>(connection, &shut_out, &[Text(&nobody), resource, from, to]).await? == 0 {
        return Ok(false);
    }
    let note = format!(
        "INSERT INTO fenced_admin_log \
           (done_by, action, resource, from_token, to_token, from_issuer, to_issuer, reason) \
         SELECT {}, 'seal mark', resource, token, \
                CASE WHEN token < ? THEN ? ELSE token END, issuer, ?, ? \
         FROM fenced_high_water_mark WHERE resource = ?",
        DB::WHO,
    );
    let reason = Text(seal.reason.as_str());
    run::<DB>(connection, &note, &[above, above, to, reason, resource]).await?;
    let raise = format!(
        "UPDATE fenced_high_water_mark \
         SET issuer = ?, token = CASE WHEN token < ? THEN ? ELSE token END, \
         claimed_at = {} WHERE resource = ?",
        DB::NOW,
    );
    run::<DB>(connection, &raise, &[to, above, above, resource]).await?;
    Ok(true)
}

/// Returns whether the mark was where it was expected, and now is where it should be.
pub(crate) async fn reset<DB>(
    connection: &mut DB::Connection,
    lock_timeout: Option<Duration>,
    reset: &Reset,
) -> Result<bool, sqlx::Error>
where
    DB: Wording,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
{
    let resource = Text(reset.resource().as_str());
    let (expected, to) = (Number(reset.expected().into()), Number(reset.to().into()));
    let nobody = Holder::random().digest();
    let set = format!(
        "{}UPDATE fenced_high_water_mark SET holder = ?, token = ?, claimed_at = {} \
         WHERE resource = ? AND token = ?",
        DB::limit(lock_timeout),
        DB::NOW,
    );
    if run::<DB>(connection, &set, &[Text(&nobody), to, resource, expected]).await? == 0 {
        return Ok(false);
    }
    let note = format!(
        "INSERT INTO fenced_admin_log \
           (done_by, action, resource, from_token, to_token, from_issuer, to_issuer, reason) \
         SELECT {}, 'reset mark', resource, ?, token, issuer, issuer, ? \
         FROM fenced_high_water_mark WHERE resource = ?",
        DB::WHO,
    );
    let reason = Text(reset.reason().as_str());
    run::<DB>(connection, &note, &[expected, reason, resource]).await?;
    Ok(true)
}

/// Returns how many rows were changed, or were already right.
async fn run<DB>(
    connection: &mut DB::Connection,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, sqlx::Error>
where
    DB: Wording,
    String: Encode<'static, DB> + Type<DB>,
    i64: Encode<'static, DB> + Type<DB>,
{
    let mut arguments = DB::Arguments::default();
    for value in values {
        match value {
            Text(text) => arguments.add((*text).to_owned()),
            Number(number) => arguments.add(*number),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    let statement = Statement {
        sql: AssertSqlSafe(sql).into_sql_str(),
        arguments,
        persistent: false,
    };
    DB::run(connection, statement).await
}
