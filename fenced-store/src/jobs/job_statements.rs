//! The tables of jobs in databases whose own functions cannot keep them. The statements are the
//! same in all of these. Only the holder of the job writes, so two inserts cannot race.

use super::{JobRows, SlotState, Standing, Undone, is_time};
use crate::{
    FenceError,
    dialect::{
        Value::{self, Number, Text},
        by_statements::{ByStatements, Wording},
    },
};

impl<DB: Wording> JobRows<DB> for ByStatements {
    async fn look(
        connection: &mut DB::Connection,
        (job, slot): (&str, &str),
    ) -> Result<SlotState, FenceError> {
        let columns = columns::<DB>("? = 1 AND f.below_slot > ?", |text| text);
        let from = DB::SCHEMA;
        let look = format!(
            "SELECT {columns} FROM (SELECT 1 AS one) AS one \
             LEFT JOIN {from}fenced_job_run AS r ON r.job = ? AND r.slot = ? \
             LEFT JOIN {from}fenced_forgotten_job AS f ON f.job = ?"
        );
        let place = [Text(job), Text(slot), Text(job)];
        let values = [&[Number(is_time(slot).into()), Text(slot)], &place[..]].concat();
        let rows = DB::look(connection, &look, &values).await?;
        SlotState::of::<DB>(rows.first().ok_or(sqlx::Error::RowNotFound)?, 0)
    }

    async fn run(
        connection: &mut DB::Connection,
        place: (&str, &str),
    ) -> Result<SlotState, FenceError> {
        let state = <Self as JobRows<DB>>::look(connection, place).await?;
        if state.standing == Standing::Due {
            let token = format!(
                "(SELECT token FROM {}fenced_high_water_mark WHERE resource = ?)",
                DB::SCHEMA
            );
            let set = format!(
                "done_token = {token}, done_at = {}, retry_at = NULL",
                DB::NOW
            );
            let resource = format!("job:{}", place.0);
            change::<DB>(connection, place, &set, &[Text(&resource)]).await?;
        }
        Ok(state)
    }

    async fn save(
        connection: &mut DB::Connection,
        place: (&str, &str),
        steps: i64,
        progress: &str,
    ) -> Result<(), FenceError> {
        let values = [Number(steps), Text(progress)];
        change::<DB>(connection, place, "steps = ?, progress = ?", &values).await
    }

    async fn fail(
        connection: &mut DB::Connection,
        place: (&str, &str),
        error: &str,
        retry_in_ms: i64,
    ) -> Result<(), FenceError> {
        let set = format!(
            "attempts = attempts + 1, last_error = ?, retry_at = {}",
            DB::LATER
        );
        let values = [Text(error), Number(retry_in_ms)];
        change::<DB>(connection, place, &set, &values).await
    }

    async fn newest(connection: &mut DB::Connection, job: &str) -> Result<String, FenceError> {
        let from = DB::SCHEMA;
        let newest = format!(
            "SELECT COALESCE(MAX(slot), '') FROM ( \
               SELECT MAX(slot) AS slot FROM {from}fenced_job_run \
                 WHERE job = ? AND done_token IS NOT NULL AND {} \
               UNION ALL SELECT below_slot FROM {from}fenced_forgotten_job WHERE job = ?) AS seen",
            DB::IS_TIME_SLOT,
        );
        let rows = DB::look(connection, &newest, &[Text(job), Text(job)]).await?;
        Ok(DB::text(rows.first().ok_or(sqlx::Error::RowNotFound)?, 0)?)
    }

    async fn list(
        connection: &mut DB::Connection,
        (job, slot): (&str, &str),
        count: i64,
    ) -> Result<Vec<(String, String, SlotState)>, FenceError> {
        // A forgotten slot has no row. The texts are cut, because many long ones would not fit into
        // memory.
        let columns = columns::<DB>("1 = 0", |text| format!("SUBSTR({text}, 1, {LISTED})"));
        let (job_name, slot_name) = (DB::text_of("r.job"), DB::text_of("r.slot"));
        let from = DB::SCHEMA;
        // A list from the beginning includes empty names, too.
        let after = if job.is_empty() && slot.is_empty() {
            ">="
        } else {
            ">"
        };
        let list = format!(
            "SELECT {job_name}, {slot_name}, {columns} FROM {from}fenced_job_run AS r \
             WHERE r.job > ? OR (r.job = ? AND r.slot {after} ?) \
             ORDER BY r.job, r.slot LIMIT {count}"
        );
        let values = [Text(job), Text(job), Text(slot)];
        let rows = DB::look(connection, &list, &values).await?;
        rows.iter()
            .map(|row| {
                Ok((
                    DB::shown_text(row, 0)?,
                    DB::shown_text(row, 1)?,
                    SlotState::of::<DB>(row, 2)?,
                ))
            })
            .collect()
    }

    async fn retry(
        connection: &mut DB::Connection,
        (job, slot): (&str, &str),
    ) -> Result<bool, FenceError> {
        let retry = format!(
            "UPDATE {}fenced_job_run SET attempts = 0, retry_at = NULL \
             WHERE job = ? AND slot = ? AND done_token IS NULL",
            DB::SCHEMA
        );
        Ok(DB::change(connection, &retry, &[Text(job), Text(slot)]).await? > 0)
    }

    async fn forget(
        connection: &mut DB::Connection,
        (job, slot): (&str, &str),
    ) -> Result<bool, FenceError> {
        let forget = format!(
            "DELETE FROM {}fenced_job_run WHERE job = ? AND slot = ?",
            DB::SCHEMA
        );
        Ok(DB::change(connection, &forget, &[Text(job), Text(slot)]).await? > 0)
    }

    async fn forget_below(
        connection: &mut DB::Connection,
        (job, slot): (&str, &str),
        undone: Undone,
    ) -> Result<String, FenceError> {
        let (from, is_time) = (DB::SCHEMA, DB::IS_TIME_SLOT);
        let limits = format!(
            "SELECT COALESCE(MIN(CASE WHEN done_token IS NULL THEN slot END), ?), \
               COALESCE(MAX(CASE WHEN done_token IS NOT NULL THEN slot END), ''), \
               COALESCE((SELECT below_slot FROM {from}fenced_forgotten_job WHERE job = ?), '') \
             FROM {from}fenced_job_run WHERE job = ? AND {is_time}"
        );
        let rows = DB::look(connection, &limits, &[Text(slot), Text(job), Text(job)]).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        let (first_undone, newest_done) = (DB::text(row, 0)?, DB::text(row, 1)?);
        let below = match undone {
            Undone::Kept => first_undone.min(newest_done).min(slot.to_owned()),
            Undone::GivenUp => slot.to_owned(),
        };
        let below = below.max(DB::text(row, 2)?);
        if below.is_empty() {
            return Ok(below);
        }
        let values = [Text(job), Text(&below)];
        for (statement, values) in [
            (
                format!("DELETE FROM {from}fenced_forgotten_job WHERE job = ?"),
                &values[..1],
            ),
            (
                format!("INSERT INTO {from}fenced_forgotten_job (job, below_slot) VALUES (?, ?)"),
                &values,
            ),
            (
                format!(
                    "DELETE FROM {from}fenced_job_run WHERE job = ? AND slot < ? AND {is_time}"
                ),
                &values,
            ),
        ] {
            DB::change(connection, &statement, values).await?;
        }
        Ok(below)
    }
}

/// Changes the row of a slot. Makes the row first if it is missing.
async fn change<DB: Wording>(
    connection: &mut DB::Connection,
    (job, slot): (&str, &str),
    set: &str,
    values: &[Value<'_>],
) -> Result<(), FenceError> {
    let place = [Text(job), Text(slot)];
    let change = format!(
        "UPDATE {}fenced_job_run SET {set} WHERE job = ? AND slot = ? AND done_token IS NULL",
        DB::SCHEMA
    );
    let make = format!(
        "{} {}fenced_job_run (job, slot) VALUES (?, ?)",
        DB::INSERT_NEW,
        DB::SCHEMA
    );
    DB::change(connection, &make, &place).await?;
    DB::change(connection, &change, &[values, &place].concat()).await?;
    Ok(())
}

/// The number of characters of each text that a list shows.
const LISTED: usize = 10_000;

/// The columns of a [`SlotState`], of the row `r`.
fn columns<DB: Wording>(is_forgotten: &str, cut: impl Fn(String) -> String) -> String {
    let (now, done_at) = (DB::millis(DB::NOW), DB::millis("r.done_at"));
    let retry_in = format!("{} - {now}", DB::millis("r.retry_at"));
    let integer = |name: &str| DB::integer(&format!("COALESCE(r.{name}, 0)"));
    let text = |name: &str| cut(DB::text_of(&format!("COALESCE(r.{name}, '')")));
    format!(
        "CASE WHEN r.done_token IS NOT NULL THEN 'done' \
              WHEN {is_forgotten} THEN 'forgotten' \
              WHEN {retry_in} > 0 THEN 'backing off' ELSE 'due' END, \
         {}, COALESCE({done_at}, 0), {}, {}, {}, {}, COALESCE({retry_in}, 0)",
        integer("done_token"),
        integer("steps"),
        text("progress"),
        integer("attempts"),
        text("last_error"),
    )
}
