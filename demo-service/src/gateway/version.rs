//! `ETag` and `If-Match`: writes on condition that nobody has written since.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
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

/// The `If-Match` of a request, if it has one: tags of which one must be that of the account. What
/// is no tag of ours matches nothing.
///
/// It is looked at after the fence: who has lost its lease must not be told to read and try again.
#[derive(Debug)]
pub(super) struct Condition(Option<Vec<HeaderValue>>);

/// What a write on condition has come to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written {
    /// It was made; this was the balance before, if there was the account.
    Over(Option<i64>),
    /// The condition was false, and nothing was written.
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
        let Some(tags) = &self.0 else {
            DB::set_balance(connection, id, balance).await?;
            return Ok(Written::Over(before));
        };
        let matching = before.filter(|before| {
            let tag = Version(*before).tag();
            let mut tags = tags
                .iter()
                .flat_map(|tags| tags.as_bytes().split(|it| *it == b','));
            tags.any(|one| [b"*", tag.as_bytes()].contains(&one.trim_ascii()))
        });
        let written = match matching {
            Some(before) => DB::replace_balance(connection, id, before, balance).await?,
            None => false,
        };
        Ok(if written {
            Written::Over(before)
        } else {
            Written::Otherwise
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Condition {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let tags = parts.headers.get_all(header::IF_MATCH).iter();
        let tags: Vec<_> = tags.cloned().collect();
        Ok(Self((!tags.is_empty()).then_some(tags)))
    }
}

/// Whoever gets this holds the lease: it is to read again, unlike one who lost it.
pub(super) fn mismatch(id: &str) -> Problem {
    Problem::new(problems::VERSION_MISMATCH)
        .detail("the account is not what If-Match says any more: read it and decide again")
        .with("id", id)
}
