//! The reads and writes of a transaction, which is the only writer of the file until it ends.

use std::time::Duration;

use sqlx::{Row, SqliteConnection, sqlite::SqliteRow};

/// How long ended acquisitions are remembered, and how long a waiter may be silent, in
/// microseconds.
const TOMBSTONE_TIME: i64 = 120_000_000;
pub(super) const SILENCE: i64 = 3_000_000;

/// The largest token.
pub(super) const LAST_TOKEN: i64 = 999_999_999_999_999;

/// A transaction that has begun, and the time when it did.
pub(super) struct Rows<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    /// Microseconds of Unix time.
    pub(super) now: i64,
}

/// The name of a lease, a holder as it is kept, and an attempt of it, or none for the whole
/// acquisition.
pub(super) struct Asker {
    pub(super) lease: String,
    pub(super) holder: String,
    pub(super) attempt: String,
}

impl Asker {
    fn columns(&self) -> (&str, &str, &str) {
        (&self.lease, &self.holder, &self.attempt)
    }
}

/// A row of a resource that was ever held.
#[derive(Clone, Debug)]
pub(super) struct LeaseRow {
    pub(super) token: i64,
    pub(super) revocation: i64,
    /// Empty if it is free.
    pub(super) holder: String,
    pub(super) expires_at: i64,
    pub(super) attempts: Vec<String>,
}

impl LeaseRow {
    fn read(row: &SqliteRow) -> sqlx::Result<Self> {
        let attempts: &str = row.try_get("attempts")?;
        Ok(Self {
            token: row.try_get("token")?,
            revocation: row.try_get("revocation")?,
            holder: row.try_get("holder")?,
            expires_at: row.try_get("expires_at")?,
            attempts: attempts.split_whitespace().map(str::to_owned).collect(),
        })
    }

    /// The greatest token of this resource that was ever taken.
    pub(super) fn last_token(&self) -> i64 {
        self.token.max(self.revocation)
    }

    pub(super) const fn is_free(&self) -> bool {
        self.holder.is_empty()
    }
}

/// Runs a statement with these values; the number of rows that it changed.
macro_rules! change {
    ($rows:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query($sql)$(.bind($value))*
            .execute(&mut *$rows.connection)
            .await
            .map(|done| done.rows_affected())
    };
}

/// Reads one value, which has to be there.
macro_rules! value {
    ($rows:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*
            .fetch_one(&mut *$rows.connection)
            .await
    };
}

impl Rows<'_> {
    /// The time that is left until then.
    pub(super) fn left(&self, until: i64) -> Duration {
        Duration::from_micros(u64::try_from(until - self.now).unwrap_or(0))
    }

    /// The time after so long, if it can be stored.
    pub(super) fn after(&self, time: Duration) -> i64 {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        self.now.saturating_add(micros)
    }

    /// The row of a resource, after a lease that ran out was ended.
    pub(super) async fn lease(&mut self, resource: &str) -> sqlx::Result<Option<LeaseRow>> {
        let row = sqlx::query(
            "SELECT token, revocation, holder, expires_at, attempts FROM main.fenced_lease \
             WHERE resource = ?",
        )
        .bind(resource)
        .fetch_optional(&mut *self.connection)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let mut lease = LeaseRow::read(&row)?;
        if !lease.is_free() && lease.expires_at <= self.now {
            self.lose(resource, std::mem::take(&mut lease.holder))
                .await?;
            lease.attempts.clear();
        }
        Ok(Some(lease))
    }

    /// Ends a lease that its holder has lost, and with it the acquisition.
    async fn lose(&mut self, lease: &str, holder: String) -> sqlx::Result<()> {
        let whole = Asker {
            lease: lease.to_owned(),
            holder,
            attempt: String::new(),
        };
        self.bury(&whole, 0).await?;
        self.free(lease).await
    }

    pub(super) async fn free(&mut self, resource: &str) -> sqlx::Result<()> {
        const FREE: &str = "UPDATE main.fenced_lease SET holder = '', expires_at = 0, \
                            attempts = '', metadata = NULL WHERE resource = ?";
        change!(self, FREE, resource).map(drop)
    }

    /// The greatest token of the leases whose rows were forgotten.
    pub(super) async fn floor(&mut self) -> sqlx::Result<i64> {
        const FLOOR: &str = "SELECT coalesce(max(token), 0) FROM main.fenced_lease_floor";
        value!(self, FLOOR)
    }

    /// Gives a free resource to an attempt.
    pub(super) async fn grant(
        &mut self,
        asker: &Asker,
        token: i64,
        ttl: Duration,
        metadata: Option<&str>,
    ) -> sqlx::Result<()> {
        const GRANT: &str = "INSERT INTO main.fenced_lease \
            (resource, token, holder, expires_at, attempts, metadata) VALUES (?, ?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET token = excluded.token, holder = excluded.holder, \
            expires_at = excluded.expires_at, attempts = excluded.attempts, \
            metadata = excluded.metadata";
        let (lease, holder, attempt) = asker.columns();
        let expires_at = self.after(ttl);
        change!(
            self, GRANT, lease, token, holder, expires_at, attempt, metadata
        )
        .map(drop)
    }

    pub(super) async fn set_attempts(
        &mut self,
        resource: &str,
        attempts: &[String],
    ) -> sqlx::Result<()> {
        const SET: &str = "UPDATE main.fenced_lease SET attempts = ? WHERE resource = ?";
        change!(self, SET, attempts.join(" "), resource).map(drop)
    }

    /// Remembers that an acquisition has ended, or this attempt of it.
    pub(super) async fn bury(&mut self, ended: &Asker, token: i64) -> sqlx::Result<()> {
        const BURY: &str = "INSERT INTO main.fenced_tombstone \
            (resource, holder, attempt, token, ended_at) VALUES (?, ?, ?, ?, ?) \
            ON CONFLICT DO UPDATE SET ended_at = excluded.ended_at";
        self.forget().await?;
        let (lease, holder, attempt) = ended.columns();
        change!(self, BURY, lease, holder, attempt, token, self.now).map(drop)
    }

    /// Forgets the tombstones that have served.
    pub(super) async fn forget(&mut self) -> sqlx::Result<()> {
        const FORGET: &str = "DELETE FROM main.fenced_tombstone WHERE ended_at < ?";
        change!(self, FORGET, self.now - TOMBSTONE_TIME).map(drop)
    }

    /// Whether this acquisition, or this attempt of it, has ended.
    pub(super) async fn has_ended(&mut self, asker: &Asker) -> sqlx::Result<bool> {
        const HAS_ENDED: &str = "SELECT EXISTS (SELECT 1 FROM main.fenced_tombstone \
             WHERE resource = ? AND holder = ? AND attempt IN ('', ?))";
        let (lease, holder, attempt) = asker.columns();
        value!(self, HAS_ENDED, lease, holder, attempt)
    }

    /// Whether the lease with this token was released by its holder, or the hold of this attempt.
    pub(super) async fn was_released(&mut self, ended: &Asker, token: i64) -> sqlx::Result<bool> {
        const WAS_RELEASED: &str = "SELECT EXISTS (SELECT 1 FROM main.fenced_tombstone \
             WHERE resource = ? AND holder = ? AND attempt = ? AND token = ?)";
        let (lease, holder, attempt) = ended.columns();
        value!(self, WAS_RELEASED, lease, holder, attempt, token)
    }

    /// The holder of the first waiter that is alive. Those that are not are dropped. A sign of life
    /// far in the future was given before the clock was set back, and does not count.
    pub(super) async fn first_waiter(&mut self, resource: &str) -> sqlx::Result<Option<String>> {
        const DROP: &str = "DELETE FROM main.fenced_waiter WHERE resource = ?1 \
             AND (wait_until <= ?2 OR abs(?2 - seen_at) > ?3)";
        const FIRST: &str =
            "SELECT holder FROM main.fenced_waiter WHERE resource = ? ORDER BY ticket LIMIT 1";
        change!(self, DROP, resource, self.now, SILENCE)?;
        sqlx::query_scalar(FIRST)
            .bind(resource)
            .fetch_optional(&mut *self.connection)
            .await
    }

    pub(super) async fn leave_queue(&mut self, asker: &Asker) -> sqlx::Result<()> {
        const LEAVE: &str = "DELETE FROM main.fenced_waiter \
                             WHERE resource = ? AND holder = ? AND attempt = ?";
        let (lease, holder, attempt) = asker.columns();
        change!(self, LEAVE, lease, holder, attempt).map(drop)
    }

    /// Takes a place at the end of the queue, or keeps the one that the attempt has. False if as
    /// many other acquisitions wait as are allowed.
    pub(super) async fn enqueue(
        &mut self,
        asker: &Asker,
        wait_until: i64,
        most: Option<u32>,
    ) -> sqlx::Result<bool> {
        const KEEP: &str = "UPDATE main.fenced_waiter SET seen_at = ?, wait_until = ? \
                            WHERE resource = ? AND holder = ? AND attempt = ?";
        const OTHERS: &str = "SELECT count(DISTINCT holder) FROM main.fenced_waiter \
                              WHERE resource = ? AND holder <> ?";
        const ENQUEUE: &str = "INSERT INTO main.fenced_waiter \
            (resource, holder, attempt, wait_until, seen_at) VALUES (?, ?, ?, ?, ?)";
        let (lease, holder, attempt) = asker.columns();
        if change!(self, KEEP, self.now, wait_until, lease, holder, attempt)? > 0 {
            return Ok(true);
        }
        if let Some(most) = most {
            let others: i64 = value!(self, OTHERS, lease, holder)?;
            if others >= i64::from(most) {
                return Ok(false);
            }
        }
        change!(self, ENQUEUE, lease, holder, attempt, wait_until, self.now)?;
        Ok(true)
    }

    /// Renews a lease that lives, to no less than it has. False if there is none.
    pub(super) async fn renew(
        &mut self,
        whole: &Asker,
        token: i64,
        ttl: Duration,
    ) -> sqlx::Result<bool> {
        const RENEW: &str = "UPDATE main.fenced_lease SET expires_at = max(expires_at, ?) \
            WHERE resource = ? AND holder = ? AND token = ? AND expires_at > ?";
        let until = self.after(ttl);
        let (lease, holder, _) = whole.columns();
        let renewed = change!(self, RENEW, until, lease, holder, token, self.now)?;
        Ok(renewed > 0)
    }

    /// Revokes a lease by force: the token that lies between it and the next.
    pub(super) async fn revoke(
        &mut self,
        resource: &str,
        lease: LeaseRow,
        revocation: i64,
    ) -> sqlx::Result<()> {
        const FORGET: &str = "DELETE FROM main.fenced_forced_release WHERE ended_at < ?";
        const REVOKE: &str = "UPDATE main.fenced_lease SET revocation = ? WHERE resource = ?";
        const REMEMBER: &str = "INSERT INTO main.fenced_forced_release \
            (resource, token, revocation, ended_at) VALUES (?, ?, ?, ?)";
        self.lose(resource, lease.holder).await?;
        change!(self, REVOKE, revocation, resource)?;
        change!(self, FORGET, self.now - TOMBSTONE_TIME)?;
        change!(self, REMEMBER, resource, lease.token, revocation, self.now).map(drop)
    }

    /// The token of a release by force of this lease that was not long ago.
    pub(super) async fn revocation_of(
        &mut self,
        resource: &str,
        token: i64,
    ) -> sqlx::Result<Option<i64>> {
        const REVOCATION: &str =
            "SELECT revocation FROM main.fenced_forced_release WHERE resource = ? AND token = ?";
        sqlx::query_scalar(REVOCATION)
            .bind(resource)
            .bind(token)
            .fetch_optional(&mut *self.connection)
            .await
    }

    /// Counts as a sign of life of these attempts. Not of one whose turn has come: it has 3 s to
    /// ask again, because it keeps the others from a free resource.
    pub(super) async fn touch(&mut self, attempts: &str) -> sqlx::Result<()> {
        const TOUCH: &str = include_str!("touch.sql");
        change!(self, TOUCH, attempts, self.now, SILENCE).map(drop)
    }

    /// Raises the mark of the store in the same file, if nothing is in the way: the store takes
    /// tokens of this issuer, and has seen no greater one. Otherwise the holder claims, and learns
    /// the reason.
    pub(super) async fn claim(
        &mut self,
        resource: &str,
        holder: &str,
        token: i64,
        issuer: &str,
    ) -> sqlx::Result<bool> {
        const STORES: &str = "SELECT count(*) FROM main.sqlite_schema \
             WHERE name IN ('fenced_lock_service', 'fenced_high_water_mark')";
        const CLAIM: &str = include_str!("claim.sql");
        let tables: i64 = value!(self, STORES)?;
        if tables < 2 {
            return Ok(false);
        }
        let claimed = change!(self, CLAIM, resource, token, holder, issuer)?;
        Ok(claimed > 0)
    }
}
