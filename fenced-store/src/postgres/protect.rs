//! Triggers are made by functions in `migrations/postgres`, which any client may call.

use sqlx::{PgPool, Postgres};

use super::error::of_protect;
use crate::{
    FenceError, dialect::sealed::Errors, leaked::begin_unfenced, queries::Queries,
    statement::Value::Text,
};

pub(super) async fn call(
    pool: &PgPool,
    call: &'static str,
    values: &[&str],
) -> Result<(), FenceError> {
    let values: Vec<_> = values.iter().map(|value| Text(value)).collect();
    let mut tx = begin_unfenced(pool).await?;
    let call = Postgres::statement(call, &values)?;
    Postgres::run(&mut tx, call).await.map_err(of_protect)?;
    tx.commit().await.map_err(Postgres::of_commit)
}
