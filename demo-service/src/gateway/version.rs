//! `ETag`, `If-Match` and `If-None-Match`: writes on condition that the account looks as it did.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
    response::{IntoResponseParts, ResponseParts},
};
use fenced_store::http::Problem;

use super::problems;
use crate::ledger::Ledger;

/// The version of an account for the `ETag` of an answer. It is the balance: an account is nothing
/// else, so two versions that look alike are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version(pub(super) i64);

impl Version {
    fn tag(self) -> String {
        format!("\"{}\"", self.0)
    }
}

impl IntoResponseParts for Version {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        if let Ok(tag) = HeaderValue::try_from(self.tag()) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        Ok(response)
    }
}

/// The `If-Match` and `If-None-Match` of a request.
///
/// It is evaluated after the fence: who has lost its lease must not be told to read and try again.
#[derive(Debug)]
pub(super) struct Condition {
    /// One of these must be the account's.
    one_of: Option<Tags>,
    /// None of these may be the account's.
    none_of: Option<Tags>,
}

/// What a write on condition has come to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    /// It was made; this was the balance before, if there was the account.
    Over(Option<i64>),
    /// The condition was false, or another write came in between. Nothing was written.
    Otherwise,
}

impl Condition {
    /// Writes a balance if the condition is true, also if others write at the same time.
    ///
    /// # Errors
    /// Those of the database.
    pub(super) async fn write<DB: Ledger>(
        &self,
        connection: &mut DB::Connection,
        id: &str,
        balance: i64,
    ) -> Result<Written, sqlx::Error> {
        let before = DB::balance(connection, id).await?;
        if self.one_of.is_none() && self.none_of.is_none() {
            DB::set_balance(connection, id, balance).await?;
            return Ok(Written::Over(before));
        }
        let written = match before {
            _ if !self.is_true(before.map(Version)) => false,
            Some(before) => DB::replace_balance(connection, id, before, balance).await?,
            None => DB::open_account(connection, id, balance).await?,
        };
        Ok(if written {
            Written::Over(before)
        } else {
            Written::Otherwise
        })
    }

    /// RFC 9110, 13.1.1 and 13.1.2: `If-None-Match` disregards that a tag is weak.
    fn is_true(&self, version: Option<Version>) -> bool {
        let of = |tags: &Tags| tags.name(version, |tag| tag);
        let weakly = |tags: &Tags| tags.name(version, |tag| tag.strip_prefix(b"W/").unwrap_or(tag));
        self.one_of.as_ref().is_none_or(of) && !self.none_of.as_ref().is_some_and(weakly)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Condition {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self {
            one_of: Tags::of(&parts.headers, header::IF_MATCH),
            none_of: Tags::of(&parts.headers, header::IF_NONE_MATCH),
        })
    }
}

/// A list of tags, or `*` for whatever there is. What is no tag of ours is nobody's.
#[derive(Debug)]
struct Tags(Vec<HeaderValue>);

impl Tags {
    fn of(headers: &HeaderMap, name: HeaderName) -> Option<Self> {
        let values: Vec<_> = headers.get_all(name).iter().cloned().collect();
        (!values.is_empty()).then_some(Self(values))
    }

    /// Whether one of them, read in this way, is that of this version. An account that does not
    /// exist has none.
    fn name(&self, version: Option<Version>, read: impl Fn(&[u8]) -> &[u8]) -> bool {
        let Some(tag) = version.map(Version::tag) else {
            return false;
        };
        // Our tags have no comma, so it does not matter that others are cut apart.
        let lists = self.0.iter().map(HeaderValue::as_bytes);
        let mut tags = lists.flat_map(|list| list.split(|byte| *byte == b','));
        tags.any(|one| {
            let one = one.trim_ascii();
            one == b"*" || read(one) == tag.as_bytes()
        })
    }
}

/// Whoever gets this still holds the lease and may read again, unlike one who lost it.
pub(super) fn mismatch(id: &str) -> Problem {
    Problem::new(problems::VERSION_MISMATCH)
        .detail(
            "If-Match or If-None-Match is not true of the account any more: read it and decide \
             again",
        )
        .with("id", id)
}
