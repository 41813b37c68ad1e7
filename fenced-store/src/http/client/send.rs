use reqwest::{RequestBuilder, Response};

use super::{Credential, Refusal, WriteError};
use crate::http::FENCING_TOKEN;

/// Sends a write with a credential, and believes only an answer that says it was fenced.
///
/// `Ok` means a 2xx with `Fencing-Accepted` for this very token. Give it a client that follows no
/// redirects (`redirect::Policy::none()`): reqwest would send the header, which is a secret, to
/// another host, too; and where a write is answered with 303, it would take the answer to a read
/// that is fenced for the answer to the write.
///
/// # Errors
/// [`WriteError`]: not fenced, refused, or no answer.
///
/// # Cancel safety
/// Not cancel safe: if it is dropped, the write may be made all the same. Read before you repeat
/// it, or number it ([`Credential::numbered`]), so that it is made once at most.
pub async fn send(
    request: RequestBuilder,
    credential: &Credential,
) -> Result<Response, WriteError> {
    let request = request.header(&FENCING_TOKEN, credential.value());
    let response = request.send().await?;
    let status = response.status();
    if !status.is_success() {
        let headers = response.headers().clone();
        // The status is an answer, even if the rest of it did not arrive.
        let body = response.bytes().await.unwrap_or_default();
        return Err(Refusal::new(status, &headers, &body).into());
    }
    if !credential.is_accepted(response.headers()) {
        return Err(WriteError::NotFenced { status });
    }
    Ok(response)
}
