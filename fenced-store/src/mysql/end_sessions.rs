//! Ends database sessions: those that hold up a claim, and those whose rollback was not answered.

use std::collections::HashSet;

use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, MySql, MySqlConnection, MySqlPool, Row,
};
use tokio::sync::Mutex;
use tracing::warn;

use super::{
    claim::may_claim,
    errors::{NO_SUCH_SESSION, SESSION_OF_ANOTHER_USER, number},
};
use crate::{
    FenceError, counted,
    dialect::{Errors, Queries, literal::literal},
    rule::Claim,
    transaction::tx_name::TxName,
};

/// Ends the sessions that are in a transaction of an older grant of this resource. Returns their
/// number. A session that is stopped inside its transaction would hold up a claim without bound.
pub(super) async fn terminate_older(
    connection: &mut MySqlConnection,
    sequencer: &Sequencer,
) -> Result<usize, FenceError> {
    // This comes before the mark is read, so these transactions have begun under that mark or an
    // earlier one.
    let older = under_way(connection, sequencer.resource()).await?;
    if may_claim(connection, sequencer).await?.0 == Claim::Replay {
        return Ok(0);
    }
    let mut ended = 0;
    // The sessions are looked up again, because a session that is in its next transaction by now is
    // left alone.
    for session in under_way(connection, sequencer.resource()).await? {
        if older.contains(&session) && end(connection, &session, sequencer).await? {
            ended += 1;
        }
    }
    Ok(ended)
}

/// A session in a fenced transaction.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Session {
    connection_id: u64,
    /// The name of the transaction.
    tx_name: String,
}

/// The sessions with an open transaction of a resource: their note in `fenced_open_transaction`
/// exists and is not committed. A note should never be committed, but a statement of the user that
/// commits leaves a committed note behind.
///
/// Nothing else shows locks without special rights, because `information_schema.innodb_trx` needs
/// the right `PROCESS`.
async fn under_way(
    connection: &mut MySqlConnection,
    resource: &ResourceName,
) -> Result<HashSet<Session>, FenceError> {
    let look = |is_committed: bool, isolation: &str| {
        format!(
            "COMMIT; SET TRANSACTION ISOLATION LEVEL {isolation}; \
             SELECT connection_id, tx_name, {is_committed} AS is_committed \
             FROM fenced_open_transaction WHERE resource = {}; ",
            literal(resource.as_str())
        )
    };
    let looks = look(false, "READ UNCOMMITTED") + &look(true, "READ COMMITTED") + "COMMIT";
    let rows = connection
        .fetch_all(sqlx::raw_sql(AssertSqlSafe(looks)))
        .await
        .map_err(MySql::of_our_call)?;
    let mut under_way = HashSet::new();
    for row in rows {
        let session = Session {
            connection_id: row.try_get("connection_id")?,
            tx_name: row.try_get("tx_name")?,
        };
        if row.try_get::<i64, _>("is_committed")? == 0 {
            under_way.insert(session);
        } else {
            under_way.remove(&session);
        }
    }
    Ok(under_way)
}

/// Ends a session. Returns whether it is gone, or will be soon. Its locks end with it.
///
/// `KILL` names a session and not a transaction. So the same message looks for the transaction
/// again, and finds no session if that transaction is over. If a session begins its next
/// transaction between these two statements, that transaction is lost; the server needs
/// microseconds between them.
async fn end(
    connection: &mut MySqlConnection,
    session: &Session,
    claiming: &Sequencer,
) -> Result<bool, FenceError> {
    let Session {
        connection_id,
        tx_name,
    } = session;
    let tx_name: String = tx_name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let of_it = format!("connection_id = {connection_id} AND tx_name = x'{tx_name}'");
    let Err(error) = kill(connection, &of_it).await else {
        warn!(
            resource = %claiming.resource(),
            token = %claiming.token(),
            session = connection_id,
            "ended a session of an older holder: it kept a claim waiting inside a transaction"
        );
        counted::termination();
        return Ok(true);
    };
    match number(&error) {
        Some(NO_SUCH_SESSION) => Ok(true),
        Some(SESSION_OF_ANOTHER_USER) => {
            warn!(
                connection_id,
                "a session of another database user is in a transaction of an older holder: \
                 give this user the right CONNECTION ADMIN, or end it by hand"
            );
            Ok(false)
        }
        _ => Err(error.into()),
    }
}

/// Ends the session whose note fulfils this condition, and remembers it as `@fenced_older`. A
/// session without a note is not found.
async fn kill(connection: &mut MySqlConnection, of_it: &str) -> Result<(), sqlx::Error> {
    let kill = format!(
        "SET @fenced_older = NULL; COMMIT; SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED; \
         SELECT connection_id INTO @fenced_older FROM fenced_open_transaction WHERE {of_it} \
         LIMIT 1; COMMIT; KILL CONNECTION @fenced_older"
    );
    MySql::rows(connection, &kill, &[]).await.map(drop)
}

/// The callers that end a session take turns, so that together they need only one session.
static ENDING: Mutex<()> = Mutex::const_new(());

/// Ends the session of a transaction, and waits until the transaction is rolled back, because the
/// server goes on with a statement whose client is gone.
pub(super) async fn end_session(pool: &MySqlPool, tx_name: TxName) -> Result<(), sqlx::Error> {
    let _turn = ENDING.lock().await;
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    match kill(&mut connection, &format!("tx_name = '{tx_name}'")).await {
        // The lock on its note ends with it.
        Ok(()) => {
            let gone = "SELECT 1 FROM fenced_open_transaction WHERE connection_id = @fenced_older \
                        FOR UPDATE; COMMIT";
            MySql::rows(&mut connection, gone, &[]).await?;
        }
        Err(error) if number(&error) == Some(NO_SUCH_SESSION) => {}
        Err(error) => return Err(error),
    }
    connection.close().await
}
