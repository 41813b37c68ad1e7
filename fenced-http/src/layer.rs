use std::sync::Arc;

use http::Method;
use tower_layer::Layer;

use crate::{Fencing, Scope, counted, methods::Methods, policy::Policy};

/// Asks every request that may change something for a fencing token.
///
/// See the [module](super) for the whole picture and an example.
///
/// # Examples
/// ```
/// use fenced_http::{FencingLayer, Scope, Unsigned};
/// use http::Method;
/// use lock_core::Issuer;
///
/// // For `PUT /accounts/42` with a token for the resource `account:42`.
/// let verifier = Unsigned::new(Issuer::new("redis")?);
/// let accounts = Scope::path("/accounts/", "account:");
/// let fencing = FencingLayer::required(verifier, accounts).methods([Method::PUT]);
/// # drop(fencing);
/// # Ok::<(), lock_core::InvalidName>(())
/// ```
#[derive(Debug)]
pub struct FencingLayer<V> {
    policy: Arc<Policy<V>>,
}

impl<V> FencingLayer<V> {
    /// A request without a token is refused with 428. A token for another resource than the request
    /// is about is refused with 403.
    #[must_use]
    pub fn required(verifier: V, scope: Scope) -> Self {
        Self::new(verifier, scope, true)
    }

    /// A request without a token passes, and [`Fenced`](crate::Fenced) is not there.
    ///
    /// A token that *is* there must be right all the same.
    #[must_use]
    pub fn optional(verifier: V, scope: Scope) -> Self {
        Self::new(verifier, scope, false)
    }

    fn new(verifier: V, scope: Scope, required: bool) -> Self {
        counted::begin();
        let policy = Policy {
            verifier: Arc::new(verifier),
            required,
            methods: Methods::default(),
            scope,
        };
        let policy = Arc::new(policy);
        Self { policy }
    }

    /// Shared with the services that have been made already, which keep what they have.
    fn policy(&mut self) -> &mut Policy<V> {
        Arc::make_mut(&mut self.policy)
    }

    /// The methods that the layer looks at. With others, request and response pass as if it was
    /// not there; only the token is kept out of the logs further in.
    ///
    /// GET stands for HEAD too, because routers answer HEAD with the handler of GET. Defaults to
    /// all but GET, HEAD, OPTIONS and TRACE: an unknown method is looked at.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.policy().methods = Methods::Only(methods.into_iter().collect());
        self
    }
}

/// Not derived, which would ask for `V: Clone`.
impl<V> Clone for FencingLayer<V> {
    fn clone(&self) -> Self {
        Self {
            policy: Arc::clone(&self.policy),
        }
    }
}

impl<S, V> Layer<S> for FencingLayer<V> {
    type Service = Fencing<S, V>;

    fn layer(&self, inner: S) -> Self::Service {
        Fencing::new(inner, Arc::clone(&self.policy))
    }
}
