use std::{future::pending, time::Duration};

use crate::{Error, ErrorKind, Runtime};

/// Takes a connection that a pool makes. `None` if the time is over.
///
/// A pool tries again while its server takes no connection, and would only say that its time is up.
/// So after three quarters of the time `refusal` is polled, which asks the server itself. Its
/// output is an error if the server takes no connections now.
///
/// # Cancel safety
/// As the two futures.
pub async fn take<C, E>(
    runtime: &dyn Runtime,
    timeout: Duration,
    pooled: impl Future<Output = Result<C, E>>,
    refusal: impl Future<Output = Option<E>>,
) -> Option<Result<C, E>> {
    let refusal = async {
        runtime.sleep(timeout * 3 / 4).await;
        match refusal.await {
            Some(error) => error,
            None => pending().await,
        }
    };
    let taken = async {
        tokio::select! {
            biased;
            connection = pooled => connection,
            error = refusal => Err(error),
        }
    };
    runtime.timeout(timeout, taken).await
}

/// The error if a request that was sent has no answer in time.
#[must_use]
pub fn no_answer(timeout: Duration) -> Error {
    Error::unknown(ErrorKind::Unavailable).because(format!("no answer within {timeout:?}"))
}
