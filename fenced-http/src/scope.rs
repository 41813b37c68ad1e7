use std::{fmt, str::FromStr, sync::Arc};

use http::{HeaderName, request::Parts};
use lock_core::ResourceName;
use percent_encoding::percent_decode_str;

/// The rule by which the layer finds the resource of a request, so that it can refuse a token for
/// another resource.
///
/// The scope must read the same value as the handler. A path is decoded as axum's `Path` decodes
/// it; in a nested router it is the path below the nesting.
#[derive(Clone)]
pub struct Scope(Source);

#[derive(Clone)]
enum Source {
    Handler,
    Path {
        before: Arc<str>,
        name: Arc<str>,
    },
    Value {
        before: Arc<str>,
        name: Arc<str>,
        rewrite: Rewrite,
    },
    Header(HeaderName),
    Function(Arc<Resolve>),
}

/// Parses a text, and writes the value in the form that is part of the name of the resource.
type Rewrite = fn(&str) -> Option<String>;

type Resolve = dyn Fn(&Parts) -> Option<ResourceName> + Send + Sync;

impl Scope {
    /// A token for any resource passes. The handler has to write to the resource of the token, or
    /// to compare that resource with the one to which it writes.
    #[must_use]
    pub const fn compared_by_handler() -> Self {
        Self(Source::Handler)
    }

    /// The path segment after `before`, with `name` in front of it.
    ///
    /// With `Scope::path("/accounts/", "account:")`, the resource of `/accounts/42` and
    /// `/accounts/42/deposit` is `account:42`. A path that does not start with `before` admits no
    /// token.
    ///
    /// Use it if the handler takes the segment as text. If the handler parses it, as `Path<i64>`
    /// does, use [`Scope::path_of`]: otherwise `/accounts/042` is another resource, but the same
    /// row.
    #[must_use]
    pub fn path(before: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self(Source::Path {
            before: before.into(),
            name: name.into(),
        })
    }

    /// The path segment after `before`, read as a `T`, with `name` in front of it.
    ///
    /// With `Scope::path_of::<i64>("/accounts/", "account:")`, the resource of `/accounts/42`,
    /// `/accounts/042` and `/accounts/+42` is `account:42`. So a row is one resource, whatever the
    /// spelling of its number is. A segment that is not a `T` admits no token.
    ///
    /// `T` is the type in the handler's `Path<T>`, and the resource has the name that `T` displays.
    /// The handler must read the same value from the same text; axum parses numbers with
    /// [`FromStr`].
    #[must_use]
    pub fn path_of<T: FromStr + fmt::Display>(
        before: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self(Source::Value {
            before: before.into(),
            name: name.into(),
            rewrite: |segment| Some(segment.parse::<T>().ok()?.to_string()),
        })
    }

    /// The value of a request header. Without this header, or with several of them, no token is
    /// admitted.
    #[must_use]
    pub const fn header(name: HeaderName) -> Self {
        Self(Source::Header(name))
    }

    /// The name that a function computes from the request. If it is `None`, no token is admitted.
    ///
    /// A refusal does not tell the client this name, because the function may know more than the
    /// client, for example from other layers. The names of the other scopes come from the client
    /// itself, and a refusal repeats them.
    #[must_use]
    pub fn from_fn<F>(function: F) -> Self
    where
        F: Fn(&Parts) -> Option<ResourceName> + Send + Sync + 'static,
    {
        Self(Source::Function(Arc::new(function)))
    }

    pub(crate) fn admits(&self, request: &Parts, resource: &ResourceName) -> bool {
        match &self.0 {
            Source::Handler => true,
            Source::Path { before, name } => segment_after(request.uri.path(), before)
                .zip(resource.as_str().strip_prefix(&**name))
                .is_some_and(|(segment, id)| is_decoded(segment, id)),
            Source::Value {
                before,
                name,
                rewrite,
            } => segment_after(request.uri.path(), before)
                .zip(resource.as_str().strip_prefix(&**name))
                .is_some_and(|(segment, id)| rewritten(segment, *rewrite).as_deref() == Some(id)),
            Source::Header(name) => {
                let mut values = request.headers.get_all(name).iter();
                values
                    .next()
                    .is_some_and(|value| value.as_bytes() == resource.as_str().as_bytes())
                    && values.next().is_none()
            }
            Source::Function(function) => function(request).is_some_and(|it| it == *resource),
        }
    }

    /// The resource that the request itself names. The refusal of a token shows it to the client.
    pub(crate) fn named_in(&self, request: &Parts) -> Option<ResourceName> {
        match &self.0 {
            Source::Handler | Source::Function(_) => None,
            Source::Path { before, name } => {
                let segment = segment_after(request.uri.path(), before)?;
                let id = percent_decode_str(segment).decode_utf8().ok()?;
                ResourceName::new(format!("{name}{id}")).ok()
            }
            Source::Value {
                before,
                name,
                rewrite,
            } => {
                let id = rewritten(segment_after(request.uri.path(), before)?, *rewrite)?;
                ResourceName::new(format!("{name}{id}")).ok()
            }
            Source::Header(name) => {
                let mut values = request.headers.get_all(name).iter();
                match (values.next(), values.next()) {
                    (Some(value), None) => ResourceName::new(value.to_str().ok()?).ok(),
                    _ => None,
                }
            }
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Handler => f.write_str("Scope::compared_by_handler()"),
            Source::Path { before, name } => write!(f, "Scope::path({before:?}, {name:?})"),
            Source::Value { before, name, .. } => {
                write!(f, "Scope::path_of({before:?}, {name:?})")
            }
            Source::Header(name) => write!(f, "Scope::header({name:?})"),
            Source::Function(_) => f.write_str("Scope::from_fn(..)"),
        }
    }
}

/// The part of a path between `before` and the next slash, if it is not empty.
fn segment_after<'a>(path: &'a str, before: &str) -> Option<&'a str> {
    let after = path.strip_prefix(before)?;
    let segment = after.split_once('/').map_or(after, |(segment, _)| segment);
    (!segment.is_empty()).then_some(segment)
}

/// Whether the decoded segment is this id. The text of the path must not be compared without
/// decoding: with `%34%32` a client could name `account:%34%32` in its token and write to account
/// 42.
fn is_decoded(segment: &str, id: &str) -> bool {
    percent_decode_str(segment).eq(id.bytes())
}

fn rewritten(segment: &str, rewrite: Rewrite) -> Option<String> {
    rewrite(&percent_decode_str(segment).decode_utf8().ok()?)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admits(scope: &Scope, request: http::request::Builder, resource: &str) -> bool {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        scope.admits(&parts, &ResourceName::new(resource).unwrap())
    }

    /// Catches: a token for one account that is taken for another.
    #[test]
    fn a_path_names_its_resource() {
        let scope = Scope::path("/accounts/", "account:");
        let about = |path: &str, resource| admits(&scope, Request::put(path), resource);
        assert!(about("/accounts/42", "account:42"));
        assert!(about("/accounts/42?dry_run=1", "account:42"));
        assert!(about("/accounts/42/deposit", "account:42"));
        assert!(about("/accounts/a%2Fb", "account:a/b"));
        for (path, resource) in [
            ("/accounts/43", "account:42"),
            ("/accounts/4", "account:42"),
            ("/accounts/42", "account:4"),
            ("/accounts/42", "orders:42"),
            ("/accounts/42", "42"),
            ("/accounts/", "account:"),
            ("/accounts//42", "account:42"),
            ("/accounts", "account:42"),
            ("/other/42", "account:42"),
        ] {
            assert!(!about(path, resource), "{path} {resource}");
        }
    }

    /// Catches: an encoded name that the handler reads as another.
    #[test]
    fn an_encoded_path_is_compared_by_what_the_handler_reads() {
        let scope = Scope::path("/accounts/", "account:");
        let about = |path: &str, resource| admits(&scope, Request::put(path), resource);
        assert!(about("/accounts/%34%32", "account:42"));
        assert!(!about("/accounts/%34%32", "account:%34%32"));
        assert!(about("/accounts/%2534", "account:%34"));
        assert!(!about("/accounts/%00", "account:%00"));
        assert!(!about("/accounts/%ff", "account:%ff"));
    }

    /// Catches: two resources for one row.
    #[test]
    fn two_spellings_of_one_number_are_one_resource() {
        let scope = Scope::path_of::<i64>("/accounts/", "account:");
        let about = |path: &str, resource| admits(&scope, Request::put(path), resource);
        for path in ["42", "042", "+42", "%34%32", "42/deposit", "0042?dry_run=1"] {
            let path = format!("/accounts/{path}");
            assert!(about(&path, "account:42"), "{path}");
        }
        for (path, resource) in [
            ("/accounts/042", "account:042"),
            ("/accounts/+42", "account:+42"),
            ("/accounts/43", "account:42"),
            ("/accounts/-42", "account:42"),
            ("/accounts/x", "account:x"),
            ("/accounts/%ff", "account:%ff"),
            ("/accounts/", "account:"),
            ("/accounts/42", "orders:42"),
            ("/other/42", "account:42"),
        ] {
            assert!(!about(path, resource), "{path} {resource}");
        }
    }

    /// Catches: the second of two headers.
    #[test]
    fn a_header_names_its_resource() {
        let scope = Scope::header(HeaderName::from_static("x-resource"));
        let request = || Request::put("/").header("x-resource", "account:42");
        assert!(admits(&scope, request(), "account:42"));
        assert!(!admits(&scope, request(), "account:43"));
        assert!(!admits(
            &scope,
            request().header("x-resource", "account:43"),
            "account:42"
        ));
        assert!(!admits(&scope, Request::put("/"), "account:42"));
    }
}
