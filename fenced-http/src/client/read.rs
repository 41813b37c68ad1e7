use std::time::Duration;

use reqwest::Response;
use tokio::time::timeout;

use super::Refusal;

/// The longest body that is read, in bytes. A problem document has a few hundred.
const BODY_LEN_MAX: usize = 64 * 1024;

/// The longest time for the body after the head has arrived.
const BODY_TIME_MAX: Duration = Duration::from_secs(3);

impl Refusal {
    /// Reads a response of reqwest. Reads at most 64 KiB of its body, for at most 3 seconds.
    ///
    /// The status is an answer, even if the rest does not arrive or does not end, because a refused
    /// client must not wait longer. The part of the body that has arrived by then is read as in
    /// [`new`](Self::new).
    ///
    /// # Panics
    /// Outside of a tokio runtime with its timer.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the response is lost.
    pub async fn read(mut response: Response) -> Self {
        let mut body = Vec::new();
        // Whether the body was in time or not, `body` has the part that has arrived.
        let _ended = timeout(BODY_TIME_MAX, beginning(&mut response, &mut body)).await;
        Self::new(response.status(), response.headers(), &body)
    }
}

/// Reads until the body ends, fails or is too long.
async fn beginning(response: &mut Response, body: &mut Vec<u8>) {
    while body.len() < BODY_LEN_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        let room = BODY_LEN_MAX - body.len();
        body.extend(chunk.iter().take(room));
    }
}
