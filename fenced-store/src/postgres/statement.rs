//! The messages that are sent, each in one round trip by the simple protocol, which has no
//! parameters: values are literals.

use std::time::Duration;

use lock_core::Sequencer;
use sqlx::AssertSqlSafe;

use super::options::{Isolation, PgTxOptions};

/// Reads a mark.
pub(super) const HIGH_WATER: &str =
    "SELECT token, holder, issuer FROM fenced.mark WHERE resource = $1";

/// A claim, in a transaction of its own.
///
/// At read committed whatever the session's default is: an older snapshot would not show the mark
/// as it is after the wait.
pub(super) fn claim(sequencer: &Sequencer, options: &PgTxOptions) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SELECT fenced.claim({}, {})",
        grant(sequencer),
        milliseconds(options.lock_timeout),
    ))
}

/// Enters and begins.
///
/// `BEGIN` comes last and turns the transaction in which the message runs into one that stays open.
/// If entering raises, it is never reached and the session is idle again; the other way round, the
/// connection would go back to the pool inside an aborted transaction and stay there.
pub(super) fn begin(sequencer: &Sequencer, options: &PgTxOptions) -> AssertSqlSafe<String> {
    let isolation = match options.isolation {
        None => "",
        Some(Isolation::ReadCommitted) => "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; ",
        Some(Isolation::RepeatableRead) => "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; ",
        Some(Isolation::Serializable) => "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; ",
    };
    AssertSqlSafe(format!(
        "{isolation}SELECT fenced.enter({}, {}, {}, {}); BEGIN",
        grant(sequencer),
        milliseconds(options.lock_timeout),
        milliseconds(options.idle_timeout),
        milliseconds(options.statement_timeout),
    ))
}

/// Commits, or fails.
///
/// PostgreSQL answers `COMMIT` of an aborted transaction with the tag `ROLLBACK` and no error, and
/// sqlx does not look at the tag. The `SELECT` fails in an aborted transaction, and in one that is
/// not the one that entered; then `COMMIT` is not reached.
///
/// `AND CHAIN` fails outside a transaction, and keeps one open for sqlx, which counts.
pub(super) fn commit(sequencer: &Sequencer) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "SELECT CASE current_setting('fenced.token', true) WHEN '{}' THEN true \
         ELSE fenced.refuse_commit() END; COMMIT AND CHAIN",
        sequencer.token(),
    ))
}

/// The arguments that make up a grant. A server may log them: the holder goes as its digest.
fn grant(sequencer: &Sequencer) -> String {
    format!(
        "{}, {}, {}, {}",
        literal(sequencer.resource().as_str()),
        sequencer.token(),
        literal(&sequencer.holder().digest()),
        literal(sequencer.issuer().as_str()),
    )
}

/// A string literal. The names of the vocabulary are ASCII and have no backslash, so it means the
/// same whatever `standard_conforming_strings` and the client's encoding are.
fn literal(text: &str) -> String {
    debug_assert!(text.is_ascii() && !text.contains('\\'));
    format!("'{}'", text.replace('\'', "''"))
}

/// 0 would mean "without bound" to the server, so the least is 1.
fn milliseconds(timeout: Option<Duration>) -> String {
    timeout.map_or_else(
        || "NULL".to_owned(),
        |timeout| {
            let rounded_up = timeout.as_nanos().div_ceil(1_000_000);
            rounded_up
                .clamp(1, i32::MAX.unsigned_abs().into())
                .to_string()
        },
    )
}

#[cfg(test)]
mod tests {
    use lock_core::{FencingToken, Holder, Issuer, ResourceName};

    use super::*;

    fn sequencer(resource: &str, holder: Holder) -> Sequencer {
        Sequencer::new(
            Issuer::new("redis").unwrap(),
            ResourceName::new(resource).unwrap(),
            FencingToken::new(34).unwrap(),
            holder,
        )
    }

    #[test]
    fn a_quote_in_a_name_stays_inside_its_literal() {
        assert_eq!(literal("a');drop--"), "'a'');drop--'");
    }

    /// What `literal` relies on.
    #[test]
    fn a_name_has_no_backslash() {
        assert!(ResourceName::new("a\\b").is_err());
        assert!(Issuer::new("a\\b").is_err());
    }

    #[test]
    fn the_secret_is_in_no_statement() {
        let holder = Holder::random();
        let sequencer = sequencer("account:42", holder);
        let options = PgTxOptions::default();
        for sql in [
            claim(&sequencer, &options).0,
            begin(&sequencer, &options).0,
            commit(&sequencer).0,
        ] {
            assert!(!sql.contains(&holder.expose()), "{sql}");
        }
    }

    #[test]
    fn a_timeout_is_never_rounded_to_unbounded() {
        assert_eq!(milliseconds(None), "NULL");
        assert_eq!(milliseconds(Some(Duration::ZERO)), "1");
        assert_eq!(milliseconds(Some(Duration::from_micros(1500))), "2");
        assert_eq!(milliseconds(Some(Duration::MAX)), "2147483647");
    }
}
