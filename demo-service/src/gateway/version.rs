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
        loop {
            let before = DB::balance(connection, id).await?;
            let written = match before {
                _ if !self.is_true(before.map(Version)) => return Ok(Written::Otherwise),
                Some(before) => DB::replace_balance(connection, id, before, balance).await?,
                None => DB::open_account(connection, id, balance).await?,
            };
            if written {
                return Ok(Written::Over(before));
            }
            // Another write came in between. Without a condition this one is made over that.
            if self.one_of.is_some() || self.none_of.is_some() {
                return Ok(Written::Otherwise);
            }
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use futures_util::future::try_join_all;
    use sqlx::Sqlite;

    use super::*;
    use crate::ledger::{self, AnyStore};

    const WRITERS: i64 = 4;
    const WRITES: i64 = 100;

    /// Or the record of the scenario would show a write that wiped out another one as harmless.
    #[tokio::test(flavor = "multi_thread")]
    async fn of_writes_at_the_same_time_each_tells_which_one_it_was_made_over() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let AnyStore::Sqlite(store) = ledger::open(&address.parse().unwrap()).await.unwrap() else {
            unreachable!("it is SQLite");
        };
        let always = Condition {
            one_of: None,
            none_of: None,
        };
        let writing = (0..WRITERS).map(async |writer| {
            let mut connection = store.pool().acquire().await?;
            let mut overwritten = Vec::new();
            for write in 0..WRITES {
                let balance = writer * WRITES + write;
                match always
                    .write::<Sqlite>(&mut connection, "1", balance)
                    .await?
                {
                    Written::Over(before) => overwritten.push(before),
                    Written::Otherwise => unreachable!("there is no condition"),
                }
            }
            Ok::<_, sqlx::Error>(overwritten)
        });
        let overwritten = try_join_all(writing).await.unwrap().concat();
        let all: BTreeSet<_> = overwritten.iter().copied().collect();
        // No balance is written twice, so none can be overwritten twice.
        assert_eq!(all.len(), overwritten.len());
        assert!(all.contains(&None), "one has opened it");
    }
}
