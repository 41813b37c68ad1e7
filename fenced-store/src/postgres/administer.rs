//! The administrator's orders, which are SQL functions.

use std::time::Duration;

use lock_core::{FencingToken, Issuer, ResourceName};
use serde::Deserialize;
use sqlx::{
    AssertSqlSafe, PgPool, Postgres, Row, SqlSafeStr, Transaction,
    pool::PoolConnection,
    postgres::{PgQueryResult, PgRow},
};

use super::{
    calls::{REFUSE_STRAY, milliseconds},
    error::{detail_of, of_commit, of_our_call},
};
use crate::{
    FenceError,
    admin::{
        AdminError, Reset, Seal,
        dialect::{Administer, Survey},
    },
    high_water::columns::undecodable,
    literal::literal,
    strays::{not_a_stray, past_strays},
};

/// Begins one of our transactions, which is not fenced. Statements in it are not prepared
/// permanently, and statements outside of one are not prepared at all: a pooler in transaction mode
/// could not follow.
pub(super) async fn begin_unfenced(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let begin = format!("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {REFUSE_STRAY}; BEGIN");
    let begin = AssertSqlSafe(begin).into_sql_str();
    past_strays(pool, || pool.begin_with(begin.clone())).await
}

async fn to_look(pool: &PgPool) -> Result<PoolConnection<Postgres>, FenceError> {
    not_a_stray(pool).await.map_err(of_our_call)
}

/// Carries out orders by calling the SQL functions.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct ByFunctions;

impl Administer<Postgres> for ByFunctions {
    async fn issuer(pool: &PgPool) -> Result<Option<Issuer>, FenceError> {
        let row = sqlx::raw_sql("SELECT fenced.current_issuer()")
            .fetch_one(&mut *to_look(pool).await?)
            .await
            .map_err(of_our_call)?;
        let name: Option<String> = row.try_get(0)?;
        name.map(Issuer::new).transpose().map_err(undecodable)
    }

    async fn change_issuer(
        pool: &PgPool,
        lock_timeout: Option<Duration>,
        seal: &Seal,
    ) -> Result<Option<Issuer>, FenceError> {
        let mut tx = begin_unfenced(pool).await.map_err(of_our_call)?;
        let seal_issuer = format!(
            "SELECT fenced.seal_issuer($1, $2, $3, {})",
            milliseconds(lock_timeout)
        );
        let changed = sqlx::query(AssertSqlSafe(seal_issuer))
            .bind(seal.from.as_str())
            .bind(seal.to.as_str())
            .bind(seal.reason.as_str())
            .persistent(false)
            .execute(&mut *tx)
            .await;
        unless_refused(changed, tx).await
    }

    async fn marks_of(
        pool: &PgPool,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> Result<Vec<ResourceName>, FenceError> {
        let marks = format!(
            "SELECT fenced.marks_of({}, {}, {count})",
            literal(issuer.as_str()),
            literal(after),
        );
        let rows = sqlx::raw_sql(AssertSqlSafe(marks))
            .fetch_all(&mut *to_look(pool).await?)
            .await;
        let name =
            |row: PgRow| ResourceName::new(row.try_get::<String, _>(0)?).map_err(undecodable);
        rows.map_err(of_our_call)?.into_iter().map(name).collect()
    }

    async fn survey(pool: &PgPool, of: &Issuer) -> Result<Survey, FenceError> {
        let survey = format!("SELECT * FROM fenced.survey({})", literal(of.as_str()));
        let survey = sqlx::raw_sql(AssertSqlSafe(survey))
            .fetch_optional(&mut *to_look(pool).await?)
            .await;
        let Some(row) = survey.map_err(of_our_call)? else {
            return Ok(Survey::default());
        };
        let resource = ResourceName::new(row.try_get::<String, _>(0)?).map_err(undecodable)?;
        let token = row.try_get::<i64, _>(1)?.try_into().map_err(undecodable)?;
        Ok(Survey {
            greatest: Some((resource, token)),
            marks: row.try_get::<i64, _>(2)?.unsigned_abs(),
        })
    }

    async fn marks_left(pool: &PgPool, of: &Issuer) -> Result<Option<(Issuer, u64)>, FenceError> {
        let left = format!("SELECT * FROM fenced.marks_left({})", literal(of.as_str()));
        let left = sqlx::raw_sql(AssertSqlSafe(left))
            .fetch_optional(&mut *to_look(pool).await?)
            .await;
        let Some(row) = left.map_err(of_our_call)? else {
            return Ok(None);
        };
        let name = Issuer::new(row.try_get::<String, _>(0)?).map_err(undecodable)?;
        Ok(Some((name, row.try_get::<i64, _>(1)?.unsigned_abs())))
    }

    async fn seal_mark(
        pool: &PgPool,
        lock_timeout: Option<Duration>,
        seal: &Seal,
        floor: FencingToken,
        resource: &ResourceName,
    ) -> Result<Option<Issuer>, FenceError> {
        let mut tx = begin_unfenced(pool).await.map_err(of_our_call)?;
        let seal_mark = format!(
            "SELECT fenced.seal_mark($1, $2, $3, $4, $5, {})",
            milliseconds(lock_timeout)
        );
        let sealed = sqlx::query(AssertSqlSafe(seal_mark))
            .bind(resource.as_str())
            .bind(seal.from.as_str())
            .bind(seal.to.as_str())
            .bind(i64::from(floor) - 1)
            .bind(seal.reason.as_str())
            .persistent(false)
            .execute(&mut *tx)
            .await;
        unless_refused(sealed, tx).await
    }

    async fn reset(
        pool: &PgPool,
        lock_timeout: Option<Duration>,
        reset: &Reset,
    ) -> Result<(), AdminError> {
        let mut tx = begin_unfenced(pool).await.map_err(of_our_call)?;
        let reset_high_water = format!(
            "SELECT fenced.reset_high_water($1, $2, $3, $4, $5, {})",
            milliseconds(lock_timeout)
        );
        sqlx::query(AssertSqlSafe(reset_high_water))
            .bind(reset.resource().as_str())
            .bind(i64::from(reset.expected()))
            .bind(i64::from(reset.to()))
            .bind(reset.reason().as_str())
            .bind(reset.to() < reset.expected())
            .persistent(false)
            .execute(&mut *tx)
            .await
            .map_err(unexpected)?;
        Ok(tx.commit().await.map_err(of_commit)?)
    }
}

/// Commits, unless the function has refused because of the issuer.
async fn unless_refused(
    called: Result<PgQueryResult, sqlx::Error>,
    tx: Transaction<'static, Postgres>,
) -> Result<Option<Issuer>, FenceError> {
    match called {
        Ok(_) => tx.commit().await.map(|()| None).map_err(of_commit),
        Err(source) => match detail_of(&source, "FN021") {
            Some(OtherIssuer { current }) => Ok(Some(current)),
            None => Err(of_our_call(source)),
        },
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
