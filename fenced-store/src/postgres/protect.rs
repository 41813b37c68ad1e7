//! Triggers are made by functions in `migrations/postgres`, which any client may call. No statement
//! is prepared permanently, so that this works behind a pooler.

use sqlx::PgPool;

use super::{
    administer::begin_unfenced,
    error::{of_commit, of_protect},
};
use crate::{
    FenceError,
    protection::{Protection, Resources},
};

pub(super) async fn protect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
    let call = match &protection.resources {
        Resources::Rows { id_column, prefix } => {
            sqlx::query("SELECT fenced.protect($1::pg_catalog.regclass, $2::pg_catalog.name, $3)")
                .bind(protection.quoted('"'))
                .bind(id_column)
                .bind(prefix.as_str())
        }
        Resources::Table(resource) => {
            sqlx::query("SELECT fenced.protect($1::pg_catalog.regclass, $2)")
                .bind(protection.quoted('"'))
                .bind(resource.as_str())
        }
    };
    let mut tx = begin_unfenced(pool).await?;
    call.persistent(false)
        .execute(&mut *tx)
        .await
        .map_err(of_protect)?;
    tx.commit().await.map_err(of_commit)
}

pub(super) async fn unprotect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    sqlx::query("SELECT fenced.unprotect($1::pg_catalog.regclass)")
        .bind(protection.quoted('"'))
        .persistent(false)
        .execute(&mut *tx)
        .await
        .map_err(of_protect)?;
    tx.commit().await.map_err(of_commit)
}
