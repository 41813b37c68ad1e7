//! The messages that this dialect sends, each in one round trip by the simple protocol. That
//! protocol has no parameters, so values are literals.

use std::time::Duration;

use futures_util::TryStreamExt;
use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, Either, Executor, PgConnection, RawSql, SqlSafeStr, SqlStr};

use super::options::{PgIsolation, PgTxOptions};
use crate::{
    dialect::literal::literal,
    transaction::{
        begin_request::{BeginRequest, Fence},
        tx_name::TxName,
    },
};

/// Fails if the session is inside a transaction: one that began before the message came. Otherwise
/// the message is a transaction of its own. The comparison is exact enough, because times count in
/// microseconds and a message takes longer.
///
/// A cast raises the error, because a cast only needs the catalog. The error text contains the cast
/// value.
pub(super) const REFUSE_LEAKED: &str = "SELECT CASE WHEN pg_catalog.transaction_timestamp() \
    OPERATOR(pg_catalog.<>) pg_catalog.statement_timestamp() \
    THEN CAST(pg_catalog.concat('in a transaction since ', \
    pg_catalog.transaction_timestamp()) AS boolean) END";

/// A part of the error text of `REFUSE_LEAKED`.
pub(super) const IN_A_TRANSACTION: &str = "in a transaction since";

/// A claim, in a transaction of its own. It must not run inside a transaction that was left open,
/// because that transaction would never be committed.
///
/// It is read committed, whatever the default of the session is, because an older snapshot would
/// not show the mark as it is after the wait.
pub(super) fn claim(sequencer: &Sequencer, options: &PgTxOptions) -> SqlStr {
    sql(format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {REFUSE_LEAKED}, fenced.claim({}, {})",
        grant(sequencer),
        milliseconds(options.lock_timeout),
    ))
}

/// Queues behind the transactions of a grant, in a transaction of its own.
pub(super) fn settle(sequencer: &Sequencer, options: &PgTxOptions) -> SqlStr {
    sql(format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {REFUSE_LEAKED}, fenced.settle({}, {})",
        grant(sequencer),
        milliseconds(options.lock_timeout),
    ))
}

/// Ends the sessions of older holders, and returns them in the column `terminated`.
pub(super) fn terminate_older(sequencer: &Sequencer) -> SqlStr {
    sql(format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         {REFUSE_LEAKED}, fenced.terminate_older({}, {}, {}) AS terminated",
        literal(sequencer.resource().as_str()),
        sequencer.token(),
        literal(sequencer.issuer().as_str()),
    ))
}

/// Begins one of our transactions, which is not fenced. Statements in it are not prepared
/// permanently, and statements outside of a transaction are not prepared at all, because a pooler
/// in transaction mode would lose them.
pub(super) fn begin_unfenced() -> SqlStr {
    sql(format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {REFUSE_LEAKED}; BEGIN"
    ))
}

/// Checks the marks and begins.
///
/// `BEGIN` comes last and turns the transaction in which the message runs into one that stays open.
/// If a check raises an error, `BEGIN` is never reached and the session is idle again. In the other
/// order, the connection would go back to the pool inside an aborted transaction and stay there. A
/// transaction that was left open before is refused, because the commit would store its writes,
/// too.
///
/// Several resources are checked in the order of their names, because a list of outputs is computed
/// from left to right. `CALL` comes first, because it refuses a transaction that was left open.
pub(super) fn begin(request: &BeginRequest, options: &PgTxOptions) -> SqlStr {
    let isolation = match options.isolation {
        None => "",
        Some(PgIsolation::ReadCommitted) => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; ",
        Some(PgIsolation::RepeatableRead) => "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; ",
        Some(PgIsolation::Serializable) => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; ",
    };
    let call = |fence| format!("fenced.begin_fenced({})", arguments(fence, options));
    let others: Vec<_> = request.others().iter().map(call).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        calls => format!("SELECT {}; ", calls.join(", ")),
    };
    let (first, tx_name) = (arguments(request.first(), options), request.tx_name());
    sql(format!(
        "{isolation}CALL fenced.begin_fenced_fast({first}, '{tx_name}'); {others}BEGIN"
    ))
}

/// The arguments of `fenced.begin_fenced`. The timeouts are not longer than the lease.
fn arguments(fence: &Fence, options: &PgTxOptions) -> String {
    let in_lease = |timeout: Option<Duration>| timeout.into_iter().chain(fence.bound()).min();
    format!(
        "{}, {}, {}, {}",
        grant(fence.sequencer()),
        milliseconds(options.lock_timeout),
        milliseconds(in_lease(options.idle_timeout)),
        milliseconds(in_lease(options.statement_timeout)),
    )
}

/// Commits, or fails.
///
/// PostgreSQL answers `COMMIT` of an aborted transaction with the tag `ROLLBACK` and no error, and
/// sqlx does not look at the tag. `CLOSE` fails in an aborted transaction. It also fails in any
/// transaction but the one that has opened the cursor, because a cursor ends with its transaction.
/// In both cases `COMMIT` is not reached. `CLOSE` needs no plan and no right: after `SET LOCAL
/// ROLE` the role may lack rights.
///
/// `AND CHAIN` fails outside a transaction. It opens another transaction, because sqlx still counts
/// one.
pub(super) fn commit(tx_name: TxName) -> SqlStr {
    sql(format!("CLOSE {tx_name}; COMMIT AND CHAIN"))
}

/// Commits as [`commit`], and then releases a lease, in a transaction of its own. So the lock
/// service holds no lock during the flush of the user's commit, and the snapshot, isolation level
/// and triggers of the user do not affect the release. The release leaves no tombstone, because no
/// late request can arrive.
///
/// If the commit fails, the server skips the rest of the message.
pub(super) fn commit_and_release(tx_name: TxName, name: &str, lease: &Sequencer) -> SqlStr {
    sql(format!(
        "CLOSE {tx_name}; COMMIT; BEGIN ISOLATION LEVEL READ COMMITTED; \
         SELECT fenced.release({}, {}, {}, false); COMMIT AND CHAIN",
        literal(name),
        lease.token(),
        literal(&lease.holder().digest()),
    ))
}

/// The number of statements of [`commit_and_release`] that are complete when the transaction of the
/// user is committed.
pub(super) const COMMITTED: usize = 2;

/// The number of complete statements of a message, and its result.
pub(super) async fn completed(
    connection: &mut PgConnection,
    message: RawSql,
) -> (usize, Result<(), sqlx::Error>) {
    let mut results = connection.fetch_many(message);
    let mut completed = 0;
    loop {
        match results.try_next().await {
            Ok(Some(Either::Left(_))) => completed += 1,
            Ok(Some(Either::Right(_))) => {}
            Ok(None) => return (completed, Ok(())),
            Err(error) => return (completed, Err(error)),
        }
    }
}

fn sql(statement: String) -> SqlStr {
    AssertSqlSafe(statement).into_sql_str()
}

/// The arguments of a grant. A server may log them, so the holder is sent as its digest.
fn grant(sequencer: &Sequencer) -> String {
    format!(
        "{}, {}, {}, {}",
        literal(sequencer.resource().as_str()),
        sequencer.token(),
        literal(&sequencer.holder().digest()),
        literal(sequencer.issuer().as_str()),
    )
}

/// The timeout in SQL; NULL if there is none.
pub(super) fn milliseconds(timeout: Option<Duration>) -> String {
    timeout
        .map(rounded_up_ms)
        .map_or_else(|| "NULL".to_owned(), |ms| ms.to_string())
}

/// 0 would mean "without bound" to the server, so the minimum is 1.
pub(super) fn rounded_up_ms(timeout: Duration) -> i32 {
    let rounded_up = timeout.as_nanos().div_ceil(1_000_000);
    i32::try_from(rounded_up).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a timeout of less than a millisecond that becomes none.
    #[test]
    fn a_timeout_is_never_rounded_to_unbounded() {
        assert_eq!(milliseconds(None), "NULL");
        assert_eq!(milliseconds(Some(Duration::ZERO)), "1");
        assert_eq!(milliseconds(Some(Duration::from_micros(1500))), "2");
        assert_eq!(milliseconds(Some(Duration::MAX)), "2147483647");
    }
}
