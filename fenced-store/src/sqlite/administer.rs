//! The administrator's orders.

use std::time::Duration;

use lock_core::{Issuer, ResourceName};
use sqlx::{Sqlite, SqlitePool, Transaction};

use super::error::{of_commit, of_our_call};
use crate::{
    FenceError,
    admin::{
        AdminError, Reset, Seal,
        by_statements::{self, Wording},
        dialect::Administer,
    },
    dialect::sealed::Operations,
    high_water::columns::undecodable,
    strays::past_strays,
};

/// Nobody logs in to a file, and how long to wait for it is up to the connection.
const fn wording() -> Wording {
    Wording {
        who: "NULL",
        limit: String::new(),
    }
}

pub(super) async fn begin_unfenced(
    pool: &SqlitePool,
) -> Result<Transaction<'static, Sqlite>, FenceError> {
    past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE"))
        .await
        .map_err(of_our_call)
}

impl Administer for Sqlite {
    async fn issuer(pool: &SqlitePool) -> Result<Option<Issuer>, FenceError> {
        let name: Option<String> = sqlx::query_scalar("SELECT name FROM fenced_issuer")
            .fetch_optional(pool)
            .await
            .map_err(of_our_call)?;
        name.map(Issuer::new).transpose().map_err(undecodable)
    }

    async fn change_issuer(pool: &SqlitePool, seal: &Seal) -> Result<(), AdminError> {
        let mut tx = begin_unfenced(pool).await?;
        let changed = by_statements::change_issuer::<Self>(&mut tx, &wording(), seal).await;
        if changed.map_err(of_our_call)? {
            return Ok(tx.commit().await.map_err(of_commit)?);
        }
        tx.rollback().await.map_err(FenceError::from)?;
        // If it changes back at this moment, the order is refused for the issuer that it names.
        let current = <Self as Administer>::issuer(pool).await?;
        Err(AdminError::OtherIssuer {
            expected: seal.from().clone(),
            current: current.unwrap_or_else(|| seal.from().clone()),
        })
    }

    async fn marks_of(
        pool: &SqlitePool,
        issuer: &Issuer,
        after: &str,
        count: i64,
    ) -> Result<Vec<ResourceName>, FenceError> {
        let marks = "SELECT resource FROM fenced_mark WHERE issuer = ? AND resource > ? \
                     ORDER BY resource LIMIT ?";
        let names: Vec<String> = sqlx::query_scalar(marks)
            .bind(issuer.as_str())
            .bind(after)
            .bind(count)
            .fetch_all(pool)
            .await
            .map_err(of_our_call)?;
        let names = names.into_iter().map(ResourceName::new);
        names.collect::<Result<_, _>>().map_err(undecodable)
    }

    async fn seal_mark(
        pool: &SqlitePool,
        _: Option<Duration>,
        seal: &Seal,
        resource: &ResourceName,
    ) -> Result<(), AdminError> {
        let mut tx = begin_unfenced(pool).await?;
        by_statements::seal_mark::<Self>(&mut tx, &wording(), seal, resource)
            .await
            .map_err(of_our_call)?;
        Ok(tx.commit().await.map_err(of_commit)?)
    }

    async fn reset(
        pool: &SqlitePool,
        _: Option<Duration>,
        reset: &Reset,
    ) -> Result<(), AdminError> {
        let mut tx = begin_unfenced(pool).await?;
        let was_reset = by_statements::reset::<Self>(&mut tx, &wording(), reset).await;
        if was_reset.map_err(of_our_call)? {
            return Ok(tx.commit().await.map_err(of_commit)?);
        }
        tx.rollback().await.map_err(FenceError::from)?;
        let mark = Self::high_water(pool, reset.resource()).await?;
        Err(AdminError::NotAsExpected {
            resource: reset.resource().clone(),
            expected: reset.expected(),
            current: mark.map(|mark| mark.token()),
        })
    }
}
