use std::fmt;

use serde::Serialize;

/// The number of a request in a record.
pub(crate) type ExchangeId = u32;

/// One request of a client, and the answer to it, as they were on the wire.
///
/// It contains secrets: tokens, and the holder in an answer about a lease.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: Message,
    /// `None` while the request is under way, or if the client went away before the answer.
    pub(crate) response: Option<Message>,
}

/// A request or a response of HTTP/1.1.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Message {
    /// `PUT /v1/accounts/42 HTTP/1.1`, or `HTTP/1.1 200 OK`.
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Does not show headers and body, because they contain secrets.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}

impl Message {
    /// The length without the body, in bytes.
    pub(super) fn head_len(&self) -> usize {
        let pair = |(name, value): &(String, String)| name.len() + value.len();
        self.start.len() + self.headers.iter().map(pair).sum::<usize>()
    }
}
