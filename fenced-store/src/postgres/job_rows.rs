//! Calls of the SQL functions that keep the tables of jobs. Calls that may come outside of a
//! transaction have no parameters, because a pooler in transaction mode would lose a prepared
//! statement.

use sqlx::{PgConnection, Postgres, Row};

use super::administer::ByFunctions;
use crate::{
    FenceError,
    dialect::{
        Errors, Operations,
        Value::{self, Number, Text},
        literal::literal,
    },
    jobs::{JobRows, SlotState, Undone},
};

impl JobRows<Postgres> for ByFunctions {
    async fn look(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
    ) -> Result<SlotState, FenceError> {
        let call = format!("job_slot({}, {})", literal(job), literal(slot));
        state(connection, &call, &[]).await
    }

    async fn run(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
    ) -> Result<SlotState, FenceError> {
        state(connection, "run_job($1, $2)", &[Text(job), Text(slot)]).await
    }

    async fn save(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
        steps: i64,
        progress: &str,
    ) -> Result<(), FenceError> {
        let values = [Text(job), Text(slot), Number(steps), Text(progress)];
        rows(connection, "save_job($1, $2, $3, $4)", &values).await?;
        Ok(())
    }

    async fn fail(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
        error: &str,
        retry_in_ms: i64,
    ) -> Result<(), FenceError> {
        let values = [Text(job), Text(slot), Text(error), Number(retry_in_ms)];
        rows(connection, "fail_job($1, $2, $3, $4)", &values).await?;
        Ok(())
    }

    async fn newest(connection: &mut PgConnection, job: &str) -> Result<String, FenceError> {
        let call = format!("newest_job({})", literal(job));
        let rows = rows(connection, &call, &[]).await?;
        Ok(rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?)
    }

    async fn list(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
        count: i64,
    ) -> Result<Vec<(String, String, SlotState)>, FenceError> {
        let call = format!("job_slots({}, {}, {count})", literal(job), literal(slot));
        let rows = rows(connection, &call, &[]).await?;
        rows.iter()
            .map(|row| {
                let state = SlotState::of::<Postgres>(row, 2)?;
                Ok((row.try_get(0)?, row.try_get(1)?, state))
            })
            .collect()
    }

    async fn retry(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
    ) -> Result<bool, FenceError> {
        is_so(connection, "retry_job($1, $2)", &[Text(job), Text(slot)]).await
    }

    async fn forget(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
    ) -> Result<bool, FenceError> {
        is_so(connection, "forget_job($1, $2)", &[Text(job), Text(slot)]).await
    }

    async fn forget_below(
        connection: &mut PgConnection,
        (job, slot): (&str, &str),
        undone: Undone,
    ) -> Result<String, FenceError> {
        let values = [Text(job), Text(slot)];
        let call = format!("forget_jobs_below($1, $2, {})", undone == Undone::GivenUp);
        let rows = rows(connection, &call, &values).await?;
        Ok(rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0)?)
    }
}

async fn rows(
    connection: &mut PgConnection,
    call: &str,
    values: &[Value<'_>],
) -> Result<Vec<sqlx::postgres::PgRow>, FenceError> {
    Postgres::look(connection, &format!("SELECT * FROM fenced.{call}"), values).await
}

async fn state(
    connection: &mut PgConnection,
    call: &str,
    values: &[Value<'_>],
) -> Result<SlotState, FenceError> {
    let rows = rows(connection, call, values).await?;
    SlotState::of::<Postgres>(rows.first().ok_or(sqlx::Error::RowNotFound)?, 0)
}

async fn is_so(
    connection: &mut PgConnection,
    call: &str,
    values: &[Value<'_>],
) -> Result<bool, FenceError> {
    let rows = rows(connection, call, values).await?;
    let is_so = rows.first().ok_or(sqlx::Error::RowNotFound)?.try_get(0);
    is_so.map_err(Postgres::of_our_call)
}
