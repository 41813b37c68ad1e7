use http::{HeaderMap, HeaderValue};
use lock_core::{FencingToken, ResourceName, Sequencer};

use crate::{FENCING_TOKEN, FencingHeader, Rejection, TokenVerifier};

/// A token that has passed the layer: its form is right, the verifier has accepted it, and it is
/// for the resource of the request.
///
/// The token may still be stale. Pass it to the store, which decides in the transaction of the
/// write: `store.begin(&fenced)`.
///
/// The layer puts the `Fenced` into the request's extensions. With feature `axum` it is an
/// extractor, and so is `Option<Fenced>` behind
/// [`FencingLayer::optional`](crate::FencingLayer::optional).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fenced {
    sequencer: Sequencer,
}

impl Fenced {
    /// Reads the headers of a request as the layer does, for a service that cannot put the layer
    /// around its handler: parses the token and has it checked. `None` if there is no token.
    ///
    /// The layer does more. A caller of this function itself has to refuse a request without a
    /// token, to check that the token is for the resource of the request
    /// ([`must_be_about`](Self::must_be_about)), and to keep the header out of the logs.
    ///
    /// # Errors
    /// The [`Rejection`] of several headers, of a malformed header, or of a header that the
    /// verifier refuses.
    pub fn from_headers<V>(headers: &HeaderMap, verifier: &V) -> Result<Option<Self>, Rejection>
    where
        V: TokenVerifier + ?Sized,
    {
        let value = only_value(headers)?;
        let fenced = value.map(|value| Self::of(value.as_bytes(), verifier));
        fenced.transpose()
    }

    /// Reads and checks a token that came with a message of a queue or over another transport, as
    /// the text of [`Credential::expose`](crate::client::Credential::expose).
    ///
    /// # Errors
    /// The [`Rejection`] of a text that is malformed, or that the verifier refuses.
    ///
    /// # Examples
    /// ```
    /// # use fenced_http::{Fenced, Unsigned, client::Credential};
    /// # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
    /// # let token = FencingToken::new(34)?;
    /// # let sequencer = Sequencer::new(issuer.clone(), resource, token, Holder::random());
    /// let sent = Credential::new(&sequencer)?.expose().to_owned();
    ///
    /// let fenced = Fenced::from_text(&sent, &Unsigned::new(issuer))?; // store.begin(&fenced)
    /// assert_eq!(fenced.sequencer(), &sequencer);
    /// # Ok(()) }
    /// ```
    pub fn from_text<V>(text: &str, verifier: &V) -> Result<Self, Rejection>
    where
        V: TokenVerifier + ?Sized,
    {
        Self::of(text.as_bytes(), verifier)
    }

    fn of<V>(value: &[u8], verifier: &V) -> Result<Self, Rejection>
    where
        V: TokenVerifier + ?Sized,
    {
        let header = FencingHeader::parse(value)?;
        let sequencer = header.to_sequencer()?;
        verifier.verify(&header)?;
        Ok(Self { sequencer })
    }

    /// Refuses a token that was issued for another resource. The error names both resources.
    ///
    /// # Errors
    /// [`Rejection::WrongResource`].
    pub fn must_be_about(&self, resource: &ResourceName) -> Result<(), Rejection> {
        if self.resource() == resource {
            Ok(())
        } else {
            Err(Rejection::WrongResource {
                token_resource: self.resource().clone(),
                request_resource: Some(resource.clone()),
            })
        }
    }

    /// The grant that was presented.
    #[must_use]
    pub const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    /// The resource for which the token was issued.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        self.sequencer.resource()
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.sequencer.token()
    }
}

/// The only value of the header. `HeaderMap::get` would return the first value, and ignore a second
/// one.
fn only_value(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Rejection> {
    let mut values = headers.get_all(&FENCING_TOKEN).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Rejection::Repeated),
    }
}

/// The layer has looked at the request and found no token, which this layer allows.
///
/// Without this mark, a handler could not distinguish "no token" from "no layer".
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoToken;
