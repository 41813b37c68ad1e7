use std::sync::Arc;

use http::Method;
use tower_layer::Layer;

use crate::{Fencing, Scope, counted, methods::Methods, policy::Policy};

/// Requires a fencing token of every request that may change something.
///
/// The [module](super) has an overview and an example.
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
    /// A request without a token is refused with 428. A token for another resource than that of the
    /// request is refused with 403.
    #[must_use]
    pub fn required(verifier: V, scope: Scope) -> Self {
        Self::new(verifier, scope, true)
    }

    /// A request without a token passes, without a [`Fenced`](crate::Fenced).
    ///
    /// A token that *is* there must still be right.
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

    /// The policy, for a change. Services that were made before keep the policy that they have.
    fn policy(&mut self) -> &mut Policy<V> {
        Arc::make_mut(&mut self.policy)
    }

    /// The methods that the layer looks at. With another method, request and response pass as if
    /// there was no layer, except that the token is marked sensitive for the logs of inner layers.
    ///
    /// GET includes HEAD, because routers answer HEAD with the handler of GET. Defaults to all
    /// methods but GET, HEAD, OPTIONS and TRACE: the layer looks at an unknown method.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.policy().methods = Methods::Only(methods.into_iter().collect());
        self
    }
}

/// This is not derived, because a derived one would require `V: Clone`.
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
