//! Reads the rows of a lease for one request, and writes them back.

use std::time::Duration;

use lock_core::{
    FencingToken,
    backend::{
        Moment,
        support::{
            End,
            rule::{self, QueueView},
        },
    },
};
use sqlx::{Row, sqlite::SqliteRow};

use super::rows::{Rows, SILENCE, change};

/// The greatest number of holds that the column of the attempts takes.
const MOST_HOLDS: usize = 1000;

/// A visit. Its holders are kept digests.
pub(super) type Visit = rule::Visit<String, String>;
type Held = rule::Held<String, String>;

/// The name of a lease, a holder as it is kept, and its attempt. Without an attempt it stands for
/// the whole acquisition.
pub(super) struct Asker {
    pub(super) lease: String,
    pub(super) holder: String,
    pub(super) attempt: Option<String>,
    /// The moment from which the asker's lease is counted.
    pub(super) asked: Moment,
}

impl Asker {
    /// The columns of the asker. The whole acquisition has an empty attempt.
    pub(super) fn columns(&self) -> (&str, &str, &str) {
        let attempt = self.attempt.as_deref().unwrap_or_default();
        (&self.lease, &self.holder, attempt)
    }
}

/// The rows before a visit.
pub(super) struct Before {
    held: Option<Held>,
    has_queue: bool,
}

impl Rows<'_> {
    /// Visits a lease. A lease that has run out is ended first.
    pub(super) async fn visit(&mut self, asker: &Asker) -> sqlx::Result<(Visit, Before)> {
        let (lease, holder, attempt) = asker.columns();
        let query = sqlx::query(include_str!("visit.sql"));
        let query = query.bind(lease).bind(holder).bind(attempt);
        let row = query.fetch_one(&mut *self.connection).await?;
        let before = Before {
            held: held(&row)?,
            has_queue: row.try_get("has_queue")?,
        };
        let ended_with: Option<i64> = row.try_get("ended_with")?;
        let mut visit = Visit {
            attempt: asker.attempt.clone(),
            asked: asker.asked,
            last_token: row.try_get("last_token")?,
            has_ended: row.try_get("has_ended")?,
            end: ended_with.map(end),
            most_holds: MOST_HOLDS,
            held: before.held.clone(),
            ..Visit::new(asker.holder.clone(), moment(self.now))
        };
        visit.end_lost();
        if before.has_queue && asker.attempt.is_some() {
            visit.queue = self.queue(asker).await?;
        }
        Ok((visit, before))
    }

    /// The waiters of a lease. Waiters that are not alive are dropped. A sign of life far in the
    /// future was given before the clock was set back, and does not count.
    async fn queue(&mut self, asker: &Asker) -> sqlx::Result<QueueView> {
        const DROP: &str = "DELETE FROM main.fenced_waiter WHERE resource = ?1 \
             AND (wait_until <= ?2 OR abs(?2 - seen_at) > ?3)";
        change!(self, DROP, &asker.lease, self.now, SILENCE)?;
        let query = sqlx::query(include_str!("queue.sql"));
        let query = query.bind(&asker.lease).bind(&asker.holder);
        let row = query.fetch_one(&mut *self.connection).await?;
        Ok(QueueView {
            is_behind: row.try_get("is_behind")?,
            is_in: row.try_get("is_in")?,
            others: row.try_get("others")?,
        })
    }

    /// Writes what a visit has changed.
    pub(super) async fn keep(
        &mut self,
        asker: &Asker,
        before: &Before,
        visit: &Visit,
    ) -> sqlx::Result<()> {
        const FREE: &str = "UPDATE main.fenced_lease SET holder = '', expires_at = 0, \
                            attempts = '', metadata = NULL WHERE resource = ?";
        const CHANGE: &str = "UPDATE main.fenced_lease SET expires_at = ?, attempts = ? \
                              WHERE resource = ?";
        const GRANT: &str = "INSERT INTO main.fenced_lease \
            (resource, token, holder, expires_at, attempts, metadata) VALUES (?, ?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET token = excluded.token, holder = excluded.holder, \
            expires_at = excluded.expires_at, attempts = excluded.attempts, \
            metadata = excluded.metadata";
        let lease = &asker.lease;
        if before.has_queue && !visit.waits {
            self.leave_queue(asker).await?;
        }
        for (holder, attempt, end) in &visit.ends {
            self.bury(lease, holder, attempt.as_deref(), *end).await?;
        }
        let goes_on = match (&before.held, &visit.held) {
            (before, after) if before == after => return Ok(()),
            (Some(before), Some(after)) => before.token == after.token,
            _ => false,
        };
        if before.held.is_some() && !goes_on {
            change!(self, FREE, lease)?;
        }
        let Some(held) = &visit.held else {
            return Ok(());
        };
        let (until, attempts) = (micros(held.until), held.attempts.join(" "));
        if goes_on {
            change!(self, CHANGE, until, attempts, lease)?;
        } else {
            let (token, note) = (i64::from(held.token), held.metadata.as_ref());
            let (holder, note) = (&held.holder, note.map(|note| note.as_str()));
            change!(self, GRANT, lease, token, holder, until, attempts, note)?;
        }
        Ok(())
    }
}

fn held(row: &SqliteRow) -> sqlx::Result<Option<Held>> {
    let holder: String = row.try_get("holder")?;
    if holder.is_empty() {
        return Ok(None);
    }
    let attempts: &str = row.try_get("attempts")?;
    Ok(Some(Held {
        holder,
        attempts: attempts.split_whitespace().map(str::to_owned).collect(),
        token: FencingToken::new(row.try_get("token")?)
            .map_err(|error| sqlx::Error::Decode(error.into()))?,
        until: moment(row.try_get("expires_at")?),
        // The rule does not need the note of a lease that it has not granted.
        metadata: None,
    }))
}

fn end(token: i64) -> End {
    let token = FencingToken::new(token.unsigned_abs());
    token.map_or(End::Over, End::Released)
}

/// A time of the rows as a moment since 1970.
fn moment(micros: i64) -> Moment {
    Moment::from_origin(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.since_origin().as_micros()).unwrap_or(i64::MAX)
}
