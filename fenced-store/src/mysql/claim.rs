//! A claim: one message raises the mark, and the caller repeats it after sessions were ended.

use futures_util::TryStreamExt;
use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, Executor, MySql, MySqlConnection, MySqlPool};

use super::options::MySqlTxOptions;
use crate::{
    FenceError,
    dialect::{Errors, Operations, literal::literal},
    rule::{self, Claim, marks},
    transaction::leaked::{says_read_only, to_read},
};

/// The number of attempts. Other transactions may begin while the sessions of older holders are
/// being ended.
pub(super) const ATTEMPTS: u32 = 3;

/// The reason why an attempt has not raised the mark.
pub(super) enum Failed {
    /// The attempt has waited for the mark, which open transactions share.
    AtTheMark(FenceError),
    /// Any other reason. An example is a wait for the row of the issuer while a seal has locked it:
    /// that is no wait for open transactions.
    Otherwise(FenceError),
}

impl From<FenceError> for Failed {
    fn from(error: FenceError) -> Self {
        Self::Otherwise(error)
    }
}

impl From<Failed> for FenceError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::AtTheMark(error) | Failed::Otherwise(error) => error,
        }
    }
}

/// Waits for the older holder for as long as the options allow.
pub(super) async fn attempt(
    pool: &MySqlPool,
    options: &MySqlTxOptions,
    sequencer: &Sequencer,
) -> Result<(), Failed> {
    let mut connection = to_read(pool).await?;
    // A claim that cannot succeed is refused before it queues, because it would hold up others in
    // the queue.
    let (_, mut is_marked) = may_claim(&mut connection, sequencer).await?;
    for _ in 0..FORMS {
        let sent = send(&mut connection, raise(options, sequencer, is_marked)).await;
        if let Err(Failed::Otherwise(error)) = &sent
            && says_read_only::<MySql>(error)
        {
            connection.close_on_drop();
        }
        sent?;
        match may_claim(&mut connection, sequencer).await? {
            (Claim::Replay, _) => return Ok(()),
            // The mark was made or forgotten in between.
            (Claim::Raise, is_marked_now) => is_marked = is_marked_now,
        }
    }
    Err(FenceError::Aborted.into())
}

/// How often `raise` is sent at most. Each time it has the form for a resource with or without a
/// mark, as the resource was found. A new mark is not forgotten for an hour, so the second time
/// fits.
const FORMS: usize = 3;

/// The number of statements of `raise` before the one that waits for the mark.
const BEFORE_THE_MARK: usize = 2;

/// Sends `raise`. Its statements are answered one by one, so the number of answers shows which lock
/// wait took too long. The statement that waits for the mark also waits for the issuer again, but
/// only for a seal that began in between.
async fn send(connection: &mut MySqlConnection, raise: String) -> Result<(), Failed> {
    let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(raise)));
    let mut answered = 0;
    loop {
        match answers.try_next().await.map_err(MySql::of_our_call) {
            Ok(Some(_)) => answered += 1,
            Ok(None) => return Ok(()),
            Err(busy @ FenceError::Busy { .. }) if answered == BEFORE_THE_MARK => {
                return Err(Failed::AtTheMark(busy));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether this grant may claim, by the present state of the tables, and whether there is a mark.
pub(super) async fn may_claim(
    connection: &mut MySqlConnection,
    sequencer: &Sequencer,
) -> Result<(Claim, bool), FenceError> {
    let mark = MySql::mark(sequencer.resource());
    let standing = marks::standing::<MySql>(connection, &mark).await?;
    let claim = rule::claim(&standing, sequencer)?;
    if let Some(issuer) = marks::issuer::<MySql>(connection).await? {
        rule::issuer(&issuer, sequencer)?;
    }
    Ok((claim, matches!(standing, rule::Standing::Marked(_))))
}

/// Raises the mark if the token is above it, and waits for its row in any case.
///
/// In this message each statement is a transaction of its own, so a client that is stopped while it
/// claims keeps no lock. The first `COMMIT` ends a transaction that was left open on this
/// connection. The last one is for sessions that do not commit by themselves.
///
/// The issuer is inserted before it is read. Otherwise two first claims would both share-lock the
/// gap of its row, and deadlock. The share lock keeps the issuer unchanged while the mark is
/// raised.
///
/// If the resource has no mark, the claim also share-locks the floor, so that no mark is forgotten
/// meanwhile. A claim of a resource with a mark does not wait for the floor.
fn raise(options: &MySqlTxOptions, sequencer: &Sequencer, is_marked: bool) -> String {
    let limit = options.limit();
    let resource = literal(sequencer.resource().as_str());
    let token = sequencer.token();
    let holder = literal(&sequencer.holder().kept_digest());
    let issuer = literal(sequencer.issuer().as_str());
    let raise = if is_marked {
        format!(
            "UPDATE fenced_high_water_mark \
             SET token = {token}, holder = {holder}, claimed_at = NOW(3) \
             WHERE resource = {resource} AND token < {token} AND issuer = {issuer} AND EXISTS \
             (SELECT 1 FROM fenced_lock_service WHERE name = {issuer} LOCK IN SHARE MODE)"
        )
    } else {
        let if_newer = include_str!("sql/if_newer.sql");
        format!(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer) \
             SELECT {resource}, {token}, {holder}, name FROM fenced_lock_service \
             WHERE name = {issuer} \
             AND {token} > (SELECT marks FROM fenced_forgotten LOCK IN SHARE MODE) \
             LOCK IN SHARE MODE\n{if_newer}"
        )
    };
    format!(
        "COMMIT; {limit}INSERT IGNORE INTO fenced_lock_service (name) VALUES ({issuer}); \
         {limit}{raise}; COMMIT"
    )
}
