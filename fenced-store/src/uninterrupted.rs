use std::{io, panic};

use tracing::Instrument;

use crate::FenceError;

/// Runs work to its end, even if the caller's future is dropped half way.
///
/// In sqlx 0.9.0 a `begin` whose future is dropped (a timeout, `select!`, a client that hung up)
/// forgets the transaction it has opened: the connection goes back to the pool inside it, and the
/// writes of its next user are silently rolled back later (transact-rs/sqlx#4385, #4393). In a task
/// of its own the `begin` runs to its end; a transaction that nobody waits for any more is then
/// dropped properly. The same goes for a claim that opens a transaction. (In SQLite a `begin` that
/// is dropped is undone, by sqlx as by us.) A commit has more than one step; half of it would leave
/// sqlx counting on a transaction that is over.
#[expect(
    clippy::disallowed_methods,
    reason = "the work ends by itself, bounded by the timeouts of pool and database"
)]
pub(crate) async fn uninterrupted<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<FenceError> + Send + 'static,
{
    match tokio::spawn(work.in_current_span()).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => panic::resume_unwind(payload),
            // The runtime is being shut down.
            Err(error) => Err(E::from(FenceError::Db {
                source: sqlx::Error::Io(io::Error::other(error)),
            })),
        },
    }
}
