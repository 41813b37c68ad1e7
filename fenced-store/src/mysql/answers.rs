//! Keeps the answers of a connection in step with its questions.
//!
//! A connection of sqlx 0.9.0 counts the answers that it still has to read, but not the answers to
//! the preparation of a statement. If the future of a statement is dropped during its preparation,
//! the next question takes those answers for its own, and waits for ever, fails, or panics. The
//! pool asks such a question, without a timeout, when it gets a connection back.
//!
//! sqlx could be mended in `sqlx-mysql/src/connection`. `prepare_statement` in `executor.rs` has to
//! note the answers to the preparation in `MySqlStream::waiting`. `wait_until_ready` in `stream.rs`
//! has to read these answers, and `recv_packet_part` in `stream.rs` must not take a header before
//! its packet is whole.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::pin, task::Poll};

use futures_util::{FutureExt, TryStreamExt};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection};

/// Reads the answers that the connection knows to be missing. If it had to wait for them, a
/// statement was dropped a moment ago, perhaps during its preparation. Only in this case the
/// function asks a question of its own, which costs a round trip and shows whether more answers are
/// missing.
pub(super) async fn catch_up(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    of_this(async {
        {
            let mut missing = pin!(connection.flush());
            match poll_fn(|context| Poll::Ready(missing.as_mut().poll(context))).await {
                Poll::Ready(read) => return read,
                Poll::Pending => missing.await?,
            }
        }
        connection.ping().await
    })
    .await
}

/// Executes statements that return no rows, and checks that the answers belong to them. The rest of
/// the answer to a preparation begins as rows do.
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
    of_this(reading).await
}

/// The driver may panic when it reads answers to another question.
async fn of_this(
    reading: impl Future<Output = Result<(), sqlx::Error>>,
) -> Result<(), sqlx::Error> {
    let read = AssertUnwindSafe(reading).catch_unwind().await;
    read.unwrap_or_else(|_| Err(of_another()))
}

fn of_another() -> sqlx::Error {
    let reason = "the answers were those to a statement that was dropped while it was prepared";
    sqlx::Error::Protocol(reason.to_owned())
}
