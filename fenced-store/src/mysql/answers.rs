//! Answers that are known to be in step with their questions.
//!
//! A connection of sqlx 0.9.0 counts the answers that it has still to read, but not those to the
//! preparation of a statement. If the future of a statement is dropped meanwhile, the next question
//! gets those answers for its own, and waits for ever, fails, or panics. The pool asks one when it
//! gets a connection back, without a limit of time.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::pin, task::Poll};

use futures_util::{FutureExt, TryStreamExt};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};

/// Reads the answers that the connection knows to be missing. If it had to wait for them, then a
/// statement was dropped a moment ago, perhaps while it was prepared: a question of its own shows
/// whether there is more. Otherwise it would cost a round trip for nothing.
pub(super) async fn catch_up(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    {
        let mut missing = pin!(connection.flush());
        match poll_fn(|context| Poll::Ready(missing.as_mut().poll(context))).await {
            Poll::Ready(read) => return read,
            Poll::Pending => missing.await?,
        }
    }
    connection.ping().await
}

/// Executes statements that return no rows, and makes sure that the answers are theirs. What is
/// left of a preparation begins as rows do; the driver may panic when it goes on to read it.
pub(super) async fn to(
    connection: &mut MySqlConnection,
    text: String,
    statements: usize,
) -> Result<(), sqlx::Error> {
    let reading = async {
        let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(text)));
        let mut missing = statements;
        while let Some(answer) = answers.try_next().await? {
            if answer.is_right() || missing == 0 {
                return Err(of_another());
            }
            missing -= 1;
        }
        if missing == 0 {
            Ok(())
        } else {
            Err(of_another())
        }
    };
    let read = AssertUnwindSafe(reading).catch_unwind().await;
    read.unwrap_or_else(|_| Err(of_another()))
}

fn of_another() -> sqlx::Error {
    let reason = "the answers were those to a statement that was dropped while it was prepared";
    sqlx::Error::Protocol(reason.to_owned())
}
