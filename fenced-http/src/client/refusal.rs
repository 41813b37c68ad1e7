use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use lock_core::FencingToken;
use serde_json::{Map, Value};

use super::Advice;
use crate::{FENCING_HIGH_WATER, ProblemType};

/// An answer that is not a 2xx, with the problem document (RFC 9457) in it, if there is one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("refused with {status}: {}", self.words())]
pub struct Refusal {
    status: StatusCode,
    members: Map<String, Value>,
    high_water: Option<FencingToken>,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// Reads an answer. A body that is no problem document counts as an empty one.
    #[must_use]
    pub fn new(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = |name| headers.get(name)?.to_str().ok();
        let retry_after = text(&RETRY_AFTER).and_then(|text| text.parse().ok());
        Self {
            status,
            members: serde_json::from_slice(body).unwrap_or_default(),
            high_water: text(&FENCING_HIGH_WATER).and_then(|text| text.parse().ok()),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    /// The status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The kind of problem, if it is one of [`ProblemType::ALL`].
    #[must_use]
    pub fn kind(&self) -> Option<ProblemType> {
        let slug = self.text("type")?.strip_prefix(ProblemType::URI_PREFIX)?;
        ProblemType::ALL
            .iter()
            .find(|kind| kind.slug() == slug)
            .copied()
    }

    /// A member of the problem document, such as `detail`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// The high-water mark, if the service has sent it. Use it only to find a fault, because this
    /// token belongs to another holder.
    #[must_use]
    pub const fn high_water(&self) -> Option<FencingToken> {
        self.high_water
    }

    /// The step that the client takes next.
    ///
    /// If the problem is unknown, only the status counts: 429 says that nothing was done, and after
    /// a 5xx the outcome is unknown. The outcome is unknown after a 503, too, because a proxy
    /// answers with 503 for a service that got the request and then failed.
    #[must_use]
    pub fn advice(&self) -> Advice {
        let Some(kind) = self.kind() else {
            return self.advice_by_status();
        };
        match kind {
            ProblemType::TOKEN_STALE | ProblemType::MARK_LOST | ProblemType::HOLDER_CONFLICT => {
                Advice::AcquireAgain
            }
            ProblemType::TOKEN_NOT_CLAIMED => Advice::ClaimFirst,
            ProblemType::STORE_UNAVAILABLE => self.retry(),
            ProblemType::OUTCOME_UNKNOWN => Advice::ReadFirst,
            _ => Advice::GiveUp,
        }
    }

    fn advice_by_status(&self) -> Advice {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => self.retry(),
            status if status.is_server_error() => Advice::ReadFirst,
            _ => Advice::GiveUp,
        }
    }

    const fn retry(&self) -> Advice {
        Advice::Retry {
            after: self.retry_after,
        }
    }

    fn text(&self, member: &str) -> Option<&str> {
        self.member(member)?.as_str()
    }

    /// The text for the message: the name of the problem, and the detail from the service.
    fn words(&self) -> String {
        let kind = self.text("type").unwrap_or("no problem document");
        match self.text("detail") {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind.to_owned(),
        }
    }
}
