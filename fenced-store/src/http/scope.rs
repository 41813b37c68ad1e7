use std::{fmt, sync::Arc};

use http::{HeaderName, request::Parts};
use lock_core::ResourceName;
use percent_encoding::percent_decode_str;

/// How the layer learns which resource a request is about, so that a token for another is refused.
///
/// Whatever it reads must be what the handler acts on. A path is decoded as axum's `Path` decodes
/// it; in a nested router it is the path below the nesting.
#[derive(Clone)]
pub struct Scope(Source);

#[derive(Clone)]
enum Source {
    Anything,
    Path { before: Arc<str>, name: Arc<str> },
    Header(HeaderName),
    Function(Arc<Resolve>),
}

type Resolve = dyn Fn(&Parts) -> Option<ResourceName> + Send + Sync;

impl Scope {
    /// Any resource is admitted: the handler takes what it writes to from the token.
    #[must_use]
    pub const fn anything() -> Self {
        Self(Source::Anything)
    }

    /// The path segment after `before`, with `name` in front of it.
    ///
    /// `Scope::path("/accounts/", "account:")` takes `/accounts/42` and `/accounts/42/deposit` to
    /// be about `account:42`. A path that does not start with `before` admits no token.
    #[must_use]
    pub fn path(before: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self(Source::Path {
            before: before.into(),
            name: name.into(),
        })
    }

    /// The value of a request header. Without it, or with several of them, no token is admitted.
    #[must_use]
    pub const fn header(name: HeaderName) -> Self {
        Self(Source::Header(name))
    }

    /// Whatever a function makes of the request. On `None` no token is admitted.
    ///
    /// A refusal does not tell the client this name, because the function may know what the client
    /// does not, as when it looks at what other layers have left in the request. The names of the
    /// other scopes are the client's own words, and a refusal repeats them.
    #[must_use]
    pub fn from_fn<F>(function: F) -> Self
    where
        F: Fn(&Parts) -> Option<ResourceName> + Send + Sync + 'static,
    {
        Self(Source::Function(Arc::new(function)))
    }

    pub(super) fn admits(&self, request: &Parts, resource: &ResourceName) -> bool {
        match &self.0 {
            Source::Anything => true,
            Source::Path { before, name } => {
                path_is_about(request.uri.path(), before, name, resource.as_str())
            }
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

    /// The resource that the request itself names, to tell a client whose token was not admitted.
    pub(super) fn named_in(&self, request: &Parts) -> Option<ResourceName> {
        match &self.0 {
            Source::Anything | Source::Function(_) => None,
            Source::Path { before, name } => {
                let id = segment(request.uri.path().strip_prefix(&**before)?);
                let id = percent_decode_str(id).decode_utf8().ok()?;
                let name = (!id.is_empty()).then(|| format!("{name}{id}"))?;
                ResourceName::new(name).ok()
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

/// [`Scope::anything`].
impl Default for Scope {
    fn default() -> Self {
        Self::anything()
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Anything => f.write_str("Scope::anything()"),
            Source::Path { before, name } => write!(f, "Scope::path({before:?}, {name:?})"),
            Source::Header(name) => write!(f, "Scope::header({name:?})"),
            Source::Function(_) => f.write_str("Scope::from_fn(..)"),
        }
    }
}

/// Compares byte by byte while decoding. The text of the path must not be compared as it is: with
/// `%34%32` a client could name `account:%34%32` in its token and write to account 42.
fn path_is_about(path: &str, before: &str, name: &str, resource: &str) -> bool {
    let Some((after, id)) = path.strip_prefix(before).zip(resource.strip_prefix(name)) else {
        return false;
    };
    let segment = segment(after);
    !segment.is_empty() && percent_decode_str(segment).eq(id.bytes())
}

/// What comes before the next slash.
fn segment(path: &str) -> &str {
    path.split_once('/').map_or(path, |(segment, _)| segment)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admits(scope: &Scope, request: http::request::Builder, resource: &str) -> bool {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        scope.admits(&parts, &ResourceName::new(resource).unwrap())
    }

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

    #[test]
    fn a_function_names_its_resource() {
        let scope = Scope::from_fn(|parts| parts.uri.query()?.parse().ok());
        assert!(admits(&scope, Request::put("/?a:1"), "a:1"));
        assert!(!admits(&scope, Request::put("/?a:2"), "a:1"));
        assert!(!admits(&scope, Request::put("/"), "a:1"));
        assert!(admits(&Scope::default(), Request::put("/"), "a:1"));
    }
}
