//! The reads and writes of a transaction, which is the only writer of the file until it ends.

use std::time::Duration;

use lock_core::{FencingToken, backend::support::End};
use sqlx::SqliteConnection;

use super::visit::Asker;

/// The time for which ended acquisitions are remembered, and the time for which a waiter may be
/// silent, in microseconds.
const TOMBSTONE_TIME: i64 = 120_000_000;
pub(super) const SILENCE: i64 = 3_000_000;

/// A transaction, and the time when it began.
pub(super) struct Rows<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    /// Microseconds of Unix time.
    pub(super) now: i64,
}

/// Runs a statement with these values. Its value is the number of rows that were changed.
macro_rules! change {
    ($rows:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query($sql)$(.bind($value))*
            .execute(&mut *$rows.connection)
            .await
            .map(|done| done.rows_affected())
    };
}
pub(super) use change;

/// Reads one value, which has to exist.
macro_rules! value {
    ($rows:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*
            .fetch_one(&mut *$rows.connection)
            .await
    };
}

impl Rows<'_> {
    /// The moment after this time, or the latest moment that can be stored.
    fn after(&self, time: Duration) -> i64 {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        self.now.saturating_add(micros)
    }

    /// Remembers that an acquisition has ended, or this attempt of it.
    pub(super) async fn bury(
        &mut self,
        lease: &str,
        holder: &str,
        attempt: Option<&str>,
        end: End,
    ) -> sqlx::Result<()> {
        const BURY: &str = "INSERT INTO main.fenced_tombstone \
            (resource, holder, attempt, token, ended_at) VALUES (?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at";
        self.forget().await?;
        let attempt = attempt.unwrap_or_default();
        let token = match end {
            End::Released(token) => i64::from(token),
            _ => 0,
        };
        change!(self, BURY, lease, holder, attempt, token, self.now).map(drop)
    }

    /// Forgets the tombstones that are old enough.
    pub(super) async fn forget(&mut self) -> sqlx::Result<()> {
        const FORGET: &str = "DELETE FROM main.fenced_tombstone WHERE ended_at < ?";
        change!(self, FORGET, self.now - TOMBSTONE_TIME).map(drop)
    }

    pub(super) async fn leave_queue(&mut self, asker: &Asker) -> sqlx::Result<()> {
        const LEAVE: &str = "DELETE FROM main.fenced_waiter \
                             WHERE resource = ? AND holder = ? AND attempt = ?";
        let (lease, holder, attempt) = asker.columns();
        change!(self, LEAVE, lease, holder, attempt).map(drop)
    }

    /// Takes a place at the end of the queue for this time, or keeps the place that the attempt
    /// has.
    pub(super) async fn enqueue(&mut self, asker: &Asker, wait: Duration) -> sqlx::Result<()> {
        const ENQUEUE: &str = "INSERT INTO main.fenced_waiter \
            (resource, holder, attempt, wait_until, seen_at) VALUES (?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET wait_until = excluded.wait_until, seen_at = excluded.seen_at";
        let (lease, holder, attempt) = asker.columns();
        let until = self.after(wait);
        change!(self, ENQUEUE, lease, holder, attempt, until, self.now).map(drop)
    }

    /// Renews a lease that lives. Never moves its end nearer. Returns false if there is no such
    /// lease. This is one statement, and no visit, because a process may renew a thousand leases at
    /// once.
    pub(super) async fn renew(
        &mut self,
        whole: &Asker,
        token: FencingToken,
        ttl: Duration,
    ) -> sqlx::Result<bool> {
        const RENEW: &str = "UPDATE main.fenced_lease SET expires_at = max(expires_at, ?) \
            WHERE resource = ? AND holder = ? AND token = ? AND expires_at > ?";
        let (token, until) = (i64::from(token), self.after(ttl));
        let (lease, holder, _) = whole.columns();
        let renewed = change!(self, RENEW, until, lease, holder, token, self.now)?;
        Ok(renewed > 0)
    }

    /// Remembers a release by force: the token that lies between the lease and the next.
    pub(super) async fn revoke(
        &mut self,
        lease: &str,
        token: FencingToken,
        revocation: FencingToken,
    ) -> sqlx::Result<()> {
        const FORGET: &str = "DELETE FROM main.fenced_forced_release WHERE ended_at < ?";
        const REVOKE: &str = "UPDATE main.fenced_lease SET revocation = ? WHERE resource = ?";
        const REMEMBER: &str = "INSERT INTO main.fenced_forced_release \
            (resource, token, revocation, ended_at) VALUES (?, ?, ?, ?)";
        let (token, revocation) = (i64::from(token), i64::from(revocation));
        change!(self, REVOKE, revocation, lease)?;
        change!(self, FORGET, self.now - TOMBSTONE_TIME)?;
        change!(self, REMEMBER, lease, token, revocation, self.now).map(drop)
    }

    /// The token of a recent release by force of this lease.
    pub(super) async fn revocation_of(
        &mut self,
        lease: &str,
        token: FencingToken,
    ) -> sqlx::Result<Option<FencingToken>> {
        const REVOCATION: &str =
            "SELECT revocation FROM main.fenced_forced_release WHERE resource = ? AND token = ?";
        let query = sqlx::query_scalar(REVOCATION);
        let query = query.bind(lease).bind(i64::from(token));
        let revocation: Option<u64> = query.fetch_optional(&mut *self.connection).await?;
        Ok(revocation.and_then(|revocation| FencingToken::new(revocation).ok()))
    }

    /// Notes a sign of life of these attempts, except an attempt whose turn has come. That attempt
    /// has 3 s to ask again, because it keeps the others from a free resource.
    pub(super) async fn touch(&mut self, attempts: &str) -> sqlx::Result<()> {
        const TOUCH: &str = include_str!("touch.sql");
        change!(self, TOUCH, attempts, self.now, SILENCE).map(drop)
    }

    /// Raises the mark of the store in the same file, if the store takes tokens of this issuer, and
    /// has seen no greater one. Otherwise the holder has to claim, and learns the reason.
    pub(super) async fn claim(
        &mut self,
        resource: &str,
        holder: &str,
        token: FencingToken,
        issuer: &str,
    ) -> sqlx::Result<bool> {
        const STORES: &str = "SELECT count(*) FROM main.sqlite_schema \
             WHERE name IN ('fenced_lock_service', 'fenced_high_water_mark')";
        const CLAIM: &str = include_str!("claim.sql");
        let tables: i64 = value!(self, STORES)?;
        if tables < 2 {
            return Ok(false);
        }
        let claimed = change!(self, CLAIM, resource, i64::from(token), holder, issuer)?;
        Ok(claimed > 0)
    }
}
