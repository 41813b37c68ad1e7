//! The error of a store, [`FenceError`]. `refusals.rs` makes the errors that refuse a grant, for
//! other implementations of the rule. `classify.rs` turns an error of sqlx into a `FenceError`; the
//! codes of each database are in its own `errors.rs`.

pub(crate) mod classify;
mod refusals;

use lock_core::{FencingToken, Issuer, Lost, ResourceName};

use self::classify::is_no_connection;
use crate::NotReady;

/// The reason why the store refused a request, or could not carry it out.
///
/// There are three groups, which [`is_fenced`](FenceError::is_fenced) and
/// [`is_retryable`](FenceError::is_retryable) distinguish:
/// - *Fenced*: the mark does not show this grant, or no longer shows it. The store accepts no write
///   of this grant. Stop, and acquire afresh if there is still something to do.
/// - *Retryable*: nothing happened, and the same call may succeed a moment later.
/// - The others: each variant describes the state that it leaves behind.
///
/// No error contains a holder, neither the caller's nor another's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// A newer grant was claimed, so this holder has lost its lease, even if it has not noticed
    /// that. Or the mark of the resource was idle and is forgotten, and the token is not above the
    /// floor of the store. Fenced.
    #[error(
        "stale fencing token {presented} for \"{resource}\": \
         the store has {} {high_water}, acquire a token above that",
        if *forgotten { "forgotten its mark, and its floor is" } else { "seen" },
    )]
    #[non_exhaustive]
    Stale {
        /// The protected resource.
        resource: ResourceName,
        /// The token that was presented.
        presented: FencingToken,
        /// The greatest token that was claimed; the floor of the store if the mark is forgotten.
        high_water: FencingToken,
        /// Whether the resource has no mark any more, and the floor has refused the token.
        forgotten: bool,
    },
    /// Another holder has claimed the same token, because the lock service has issued it twice.
    /// Fenced.
    #[error(
        "fencing token {presented} for \"{resource}\" was claimed by another holder: \
         the lock service issued it twice, acquire afresh"
    )]
    #[non_exhaustive]
    DuplicateToken {
        /// The protected resource.
        resource: ResourceName,
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The token is above the mark, because it was not claimed yet. Fenced until it is claimed.
    #[error(
        "fencing token {presented} for \"{resource}\" is not claimed: \
         claim it once, right after acquiring"
    )]
    #[non_exhaustive]
    NotClaimed {
        /// The protected resource.
        resource: ResourceName,
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The token was claimed, and a failover or a restore has lost the mark. Fenced, because a
    /// newer claim may be lost, too.
    #[error(
        "the store lost the claim of fencing token {presented} for \"{resource}\", acquire afresh"
    )]
    #[non_exhaustive]
    MarkLost {
        /// The protected resource.
        resource: ResourceName,
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The token comes from a lock service that the store does not trust. Tokens of two services
    /// cannot be compared. Fenced, until an administrator changes the issuer.
    #[error(
        "\"{resource}\" takes tokens of the lock service \"{current}\", not of \"{presented}\": \
         connect to \"{current}\", or give this lock service that issuer name"
    )]
    #[non_exhaustive]
    WrongIssuer {
        /// The protected resource.
        resource: ResourceName,
        /// The issuer that was presented.
        presented: Issuer,
        /// The issuer whose tokens the store takes.
        current: Issuer,
    },
    /// The token is too great to have been issued by the lock service. Claiming it would shut out
    /// every later, real holder. See [`Plausibility`](lock_core::Plausibility). Fenced.
    #[error(
        "fencing token {presented} for \"{resource}\" is too great to have been issued: \
         look at the clock of the lock service, or set the plausibility of the store"
    )]
    #[non_exhaustive]
    Implausible {
        /// The protected resource.
        resource: ResourceName,
        /// The token that was presented.
        presented: FencingToken,
    },
    /// The same resource was named twice for one transaction. Nothing was sent.
    #[error("\"{resource}\" is named twice for one transaction: name each resource once")]
    RepeatedResource {
        /// The resource that was named twice.
        resource: ResourceName,
    },
    /// The lease had ended before the transaction began, so the store was not asked. Fenced.
    #[error(transparent)]
    LeaseLost(#[from] Lost),
    /// A lock, the database file or a pooled connection was not free in time, or the pool has too
    /// many connections that were left inside a transaction. Retryable.
    ///
    /// It is also the error of a database that refuses connections, or has too many. The pool tries
    /// again for the whole of its `acquire_timeout`, by default 30 s. `sqlx::Error::PoolTimedOut`
    /// means that the server does not answer at all, or that the pool is used up.
    #[error("{}", why_busy(source))]
    Busy {
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The database could not serialize this transaction with another one. Retryable.
    #[error("the transaction clashed with a concurrent one, try again: {source}")]
    Serialization {
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The database ended the statement or the session: a timeout, an administrator, or a newer
    /// holder that did not wait for this one. Nothing was committed. Look whether the lease is
    /// still held.
    #[error("{}", why_terminated(source))]
    Terminated {
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The commit was sent, and may have happened: no answer came, or the answer leaves the result
    /// open (a cancel, a timeout).
    #[error("it is not known whether the transaction was committed: {source}")]
    CommitUnknown {
        /// The error in place of an answer.
        source: sqlx::Error,
    },
    /// The transaction had ended before the commit: a statement failed and its error was ignored, a
    /// savepoint was left undecided, or something other than this commit ended the transaction.
    /// This commit stored nothing.
    ///
    /// Writes made after the transaction had ended may have been stored, unfenced.
    #[error(
        "the transaction was no longer open at its commit: the error of a statement was ignored, \
         or a statement ended the transaction; later writes may be stored unfenced"
    )]
    Aborted,
    /// A statement wrote to a protected table outside any fenced transaction: a bug in the program.
    /// It changed nothing. See [`FencedStore::protect`](crate::FencedStore::protect).
    #[error("a write to a protected table came without a fence: begin a fenced transaction first")]
    Unfenced {
        /// The error of the database, which names the table.
        source: sqlx::Error,
    },
    /// A statement wrote to a protected table, or to a row of it, whose resource does not fence the
    /// transaction: a bug in the program. It changed nothing. See
    /// [`FencedStore::protect`](crate::FencedStore::protect).
    #[error("a write to a protected table came under another fence: begin with its resource")]
    WrongResource {
        /// The error of the database, which names the table.
        source: sqlx::Error,
    },
    /// The table cannot be protected: there is no such table or column.
    #[error("cannot protect the table: {reason}")]
    CannotProtect {
        /// The reason.
        reason: String,
    },
    /// The tables of this crate are missing.
    #[error("the tables of fenced-store are missing in this database, call migrate() once")]
    NotMigrated {
        /// The error of the database.
        source: sqlx::Error,
    },
    /// The tables of this crate are not as this build needs them, or the role may not use them. See
    /// [`FencedStore::check`](crate::FencedStore::check).
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The migrations could not be applied. Nothing has changed, except on MySQL and MariaDB, where
    /// a change of the schema cannot be rolled back.
    #[error("the migrations of fenced-store could not be applied")]
    Migration {
        /// The error of the migration.
        source: sqlx::migrate::MigrateError,
    },
    /// Any other error of the database.
    #[error("the database failed: {source}")]
    Db {
        /// The error of the database.
        source: sqlx::Error,
    },
}

/// Names the setting that was too short, if it is one of ours.
fn why_terminated(source: &sqlx::Error) -> String {
    let error = source.as_database_error();
    let code = error.and_then(|error| error.code());
    let says = |text| error.is_some_and(|error| error.message().contains(text));
    let setting = match code.as_deref() {
        Some("25P03") => ": see `PgTxOptions::idle_timeout`",
        Some("57014") if says("statement timeout") => ": see `PgTxOptions::statement_timeout`",
        _ => ", see whether the lease is still held",
    };
    format!("the database ended the transaction{setting}: {source}")
}

fn why_busy(source: &sqlx::Error) -> String {
    match source {
        sqlx::Error::PoolTimedOut => {
            "no connection to the database in time: it is down, or the pool is used up".to_owned()
        }
        source if is_no_connection(source) => format!("no connection to the database: {source}"),
        source => format!("the store is busy, try again: {source}"),
    }
}

impl FenceError {
    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn cannot_protect(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::CannotProtect { reason }
    }

    /// The error for a grant that was certainly claimed: a store that does not know it has lost the
    /// claim.
    pub(crate) fn of_claimed(self) -> Self {
        match self {
            Self::NotClaimed {
                resource,
                presented,
            } => Self::MarkLost {
                resource,
                presented,
            },
            error => error,
        }
    }

    /// Whether the store has shut this grant out. Stop: it will never accept a write of this grant.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(
            self,
            Self::Stale { .. }
                | Self::DuplicateToken { .. }
                | Self::NotClaimed { .. }
                | Self::MarkLost { .. }
                | Self::WrongIssuer { .. }
                | Self::Implausible { .. }
                | Self::LeaseLost(_)
        )
    }

    /// The least token that the store would accept, if it refused a token that was not above the
    /// mark. Acquire with [`at_least`](lock_core::Acquire::at_least) this token.
    ///
    /// A lock service may be behind the store, because it has lost its counter or has just replaced
    /// another lock service. After this acquisition its tokens are above the mark.
    /// [`FencedLocks`](crate::FencedLocks) does this by itself.
    #[must_use]
    pub fn needed_token(&self) -> Option<FencingToken> {
        match self {
            Self::Stale { high_water, .. } => high_water.next(),
            Self::DuplicateToken { presented, .. } => presented.next(),
            _ => None,
        }
    }

    /// The resource that the error is about, if there is one.
    #[must_use]
    pub const fn resource(&self) -> Option<&ResourceName> {
        match self {
            Self::Stale { resource, .. }
            | Self::DuplicateToken { resource, .. }
            | Self::NotClaimed { resource, .. }
            | Self::MarkLost { resource, .. }
            | Self::WrongIssuer { resource, .. }
            | Self::Implausible { resource, .. }
            | Self::RepeatedResource { resource } => Some(resource),
            Self::LeaseLost(lost) => Some(lost.resource()),
            _ => None,
        }
    }

    /// The same error again, if it is fenced. Further requests with that grant get this answer.
    pub(crate) fn again(&self) -> Option<Self> {
        Some(match self {
            Self::Stale {
                resource,
                presented,
                high_water,
                forgotten,
            } => Self::Stale {
                resource: resource.clone(),
                presented: *presented,
                high_water: *high_water,
                forgotten: *forgotten,
            },
            Self::DuplicateToken {
                resource,
                presented,
            } => Self::duplicate_token(resource.clone(), *presented),
            Self::NotClaimed {
                resource,
                presented,
            } => Self::not_claimed(resource.clone(), *presented),
            Self::MarkLost {
                resource,
                presented,
            } => Self::mark_lost(resource.clone(), *presented),
            Self::WrongIssuer {
                resource,
                presented,
                current,
            } => Self::wrong_issuer(resource.clone(), presented.clone(), current.clone()),
            Self::Implausible {
                resource,
                presented,
            } => Self::implausible(resource.clone(), *presented),
            Self::LeaseLost(lost) => Self::LeaseLost(lost.clone()),
            _ => return None,
        })
    }

    /// Whether nothing happened and the same call may succeed a moment later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Serialization { .. })
    }

    /// Whether the cause may pass by itself, with any result of this call: the database is
    /// starting, failing over or overloaded, or the grant is over and another one may be granted.
    /// All other causes, such as a missing table or right, need a change by an operator.
    ///
    /// Begin or acquire afresh. To repeat the same call, ask [`is_retryable`](Self::is_retryable).
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Serialization { .. }
            | Self::Terminated { .. }
            | Self::CommitUnknown { .. }
            | Self::Stale { .. }
            | Self::DuplicateToken { .. }
            | Self::NotClaimed { .. }
            | Self::MarkLost { .. }
            | Self::LeaseLost(_)
            | Self::NotReady(NotReady::ReadOnly { .. }) => true,
            Self::Db { source } => may_return(source),
            _ => false,
        }
    }
}

/// Whether the database may give another answer later: the connection was lost, or the server is
/// starting or stopping (57), lacks room or connections (53), or takes no writes (25006, and 0A000
/// of a standby).
fn may_return(source: &sqlx::Error) -> bool {
    match source {
        #[cfg(feature = "mysql")]
        source if <sqlx::MySql as crate::dialect::Errors>::is_read_only(source) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            let passing = ["08", "53", "57", "25006", "0A000"];
            passing.iter().any(|prefix| code.starts_with(prefix))
        }),
        source => matches!(
            source,
            sqlx::Error::Io(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::WorkerCrashed
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: an exhausted pool whose message hides that the database may be down.
    #[test]
    fn a_database_that_is_down_is_not_called_busy() {
        let error = FenceError::from(sqlx::Error::PoolTimedOut);
        assert!(error.is_retryable());
        assert!(
            error
                .to_string()
                .starts_with("no connection to the database"),
            "{error}"
        );
    }
}
