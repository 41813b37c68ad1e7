use http::Method;
use reqwest::{Client, ClientBuilder, IntoUrl, RequestBuilder, Response, redirect::Policy};

use super::{Credential, Refusal, WriteError};

/// Sends writes with a credential. Accepts only an answer that says that the write was fenced.
///
/// A `Sender` follows no redirect, for two reasons. reqwest would send the header, which is a
/// secret, to another host, too. After a 303 to a write, the answer to a fenced read would count as
/// the answer to the write. So a redirect is a [`Refusal`]. Cloning is cheap.
///
/// # Examples
/// ```no_run
/// # async fn f(guard: lock_core::LeaseGuard) -> Result<(), Box<dyn std::error::Error>> {
/// use fenced_http::client::{Credential, Sender};
/// use reqwest::Method;
///
/// let credential = Credential::new(guard.sequencer())?;
/// let sender = Sender::new(reqwest::Client::builder())?;
/// let write = sender.request(Method::PUT, "http://localhost:8080/v1/accounts/42");
/// let answer = sender.send(write.body(r#"{"balance":7}"#), &credential).await?;
/// assert!(answer.status().is_success(), "and it was fenced");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Sender {
    http: Client,
}

impl Sender {
    /// Makes a sender whose client has the settings of this builder. The redirect policy is
    /// replaced.
    ///
    /// # Errors
    /// As `ClientBuilder::build`.
    pub fn new(builder: ClientBuilder) -> Result<Self, reqwest::Error> {
        let http = builder.redirect(Policy::none()).build()?;
        Ok(Self { http })
    }

    /// Begins a request. Pass it to [`send`](Self::send), or send it without a credential.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.http.request(method, url)
    }

    /// Sends a write with a credential, which replaces any credential in the request.
    ///
    /// `Ok` means a 2xx with `Fencing-Accepted` for exactly this token. A request that was begun
    /// with another client is sent with the client of this sender.
    ///
    /// A refusal is returned at most 3 seconds after its status has arrived, whatever its body is
    /// ([`Refusal::read`]). Limit the wait for the status by the timeouts of reqwest.
    ///
    /// # Errors
    /// [`WriteError`]: not fenced, refused, or no answer.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its timer.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the write may be made nevertheless. Read before
    /// you repeat the write.
    pub async fn send(
        &self,
        request: RequestBuilder,
        credential: &Credential,
    ) -> Result<Response, WriteError> {
        let mut request = request.build()?;
        credential.put_on(request.headers_mut());
        let response = self.http.execute(request).await?;
        if !response.status().is_success() {
            return Err(Refusal::read(response).await.into());
        }
        credential.believe(response.status(), response.headers())?;
        Ok(response)
    }
}
