use tower_layer::Layer;

use super::{Credential, FencedWrite};

/// Puts a credential on every request of a client, and lets no 2xx pass that does not say that the
/// store has compared it.
///
/// A credential is good for one grant, so put the layer around a client that is cheap to clone,
/// once per grant, and send through it only what is to be fenced: the answer to a read that the
/// service does not fence would be taken for a write without a fence.
///
/// The credential is a secret, so nothing around this layer or inside it may follow redirects to
/// other hosts; hyper's client follows none. The layer is for HTTP and not for gRPC, where even a
/// call that was refused is a 200.
///
/// ```
/// use fenced_store::http::client::{CallError, Credential, FencedWriteLayer};
/// use tower::{Layer, Service, ServiceExt, service_fn};
/// # use http::{Request, Response};
/// # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
/// # let sequencer = Sequencer::new(issuer, resource, FencingToken::new(33)?, Holder::random());
/// # let http = service_fn(async |_: Request<()>| Ok::<_, std::io::Error>(Response::new("done")));
///
/// let credential = Credential::new(&sequencer)?; // or what a gateway has signed: `text.parse()?`
/// let mut client = FencedWriteLayer::new(credential).layer(http);
/// let write = Request::put("http://127.0.0.1:8080/accounts/42").body(())?;
/// let answer = client.ready().await?.call(write).await;
/// // "done", says the service, but it has never heard of tokens.
/// assert!(matches!(answer, Err(CallError::NotFenced(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FencedWriteLayer {
    credential: Credential,
}

impl FencedWriteLayer {
    /// A layer that shows this credential.
    #[must_use]
    pub const fn new(credential: Credential) -> Self {
        Self { credential }
    }
}

impl<S> Layer<S> for FencedWriteLayer {
    type Service = FencedWrite<S>;

    fn layer(&self, inner: S) -> FencedWrite<S> {
        FencedWrite::new(inner, self.credential.clone())
    }
}
