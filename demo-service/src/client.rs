//! A client of the gateway, which uses HTTP only.

use std::time::Duration;

use fenced_http::{
    FENCING_TOKEN, Malformed,
    client::{Credential, Refusal, Sender, WriteError},
};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{HeaderValue, InvalidHeaderValue},
};

use crate::api::wire::{AccountBody, BalanceBody, CLIENT_HEADER, RunBody};
use crate::events::{Act, ClientName};
use palisade_cli::{Failure, with_sources};
use palisade_gateway::wire::{AcquireBody, LeaseBody, RenewBody, millis};

/// A client of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct GatewayClient {
    http: Sender,
    base: String,
    name: Option<ClientName>,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    /// The write is in the store. `fenced` only if the store says that it compared the token.
    Accepted { status: u16, fenced: bool },
    /// The write was refused: the token is not valid, or not valid any more.
    Refused { status: u16, problem: String },
}

/// The reason why there is no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The gateway did not answer.
    #[error("no answer from the gateway: {0}")]
    Transport(String),
    /// The gateway gave an unexpected answer.
    #[error("the gateway answered {status}: {detail}")]
    Unexpected { status: u16, detail: String },
    /// The text is no fencing token.
    #[error("no fencing token: {0}")]
    NoToken(#[from] Malformed),
}

impl GatewayClient {
    /// A client without a name is not recorded.
    ///
    /// # Errors
    /// If the operating system refuses something that an HTTP client needs.
    pub(crate) fn new(base: String, name: Option<ClientName>) -> Result<Self, ClientError> {
        // The gateway is on this machine, so a proxy in the environment must not be used.
        let http = reqwest::Client::builder()
            .no_proxy()
            // Clients are stopped for some time, and the gateway closes idle connections.
            .pool_max_idle_per_host(0);
        let http = Sender::new(http)?;
        Ok(Self { http, base, name })
    }

    /// A client for the director of the scenario: its requests are not part of the story.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn for_director(base: String) -> Result<Self, Failure> {
        Self::new(base, None).map_err(|error| Failure::Machine {
            doing: "making an HTTP client",
            source: std::io::Error::other(error),
        })
    }

    /// Asks for a lease; `None` if another client still held it after `wait`.
    pub(crate) async fn acquire(
        &self,
        resource: &str,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Option<LeaseBody>, ClientError> {
        let body = AcquireBody {
            ttl_ms: millis(ttl),
            wait_ms: millis(wait),
            metadata: None,
        };
        let request = self.request(Method::POST, &format!("/v1/leases/{resource}"));
        let answer = request.json(&body).send().await?;
        match answer.status() {
            StatusCode::CREATED => Ok(Some(answer.json().await?)),
            StatusCode::CONFLICT => Ok(None),
            _ => Err(unexpected(answer).await),
        }
    }

    /// Renews a lease; false if it has ended.
    pub(crate) async fn renew(&self, lease: &LeaseBody) -> Result<bool, ClientError> {
        let body = RenewBody {
            ttl_ms: lease.ttl_ms,
        };
        self.with_lease(self.lease_request(Method::PUT, lease).json(&body))
            .await
    }

    /// Releases a lease; false if it had ended already.
    pub(crate) async fn release(&self, lease: &LeaseBody) -> Result<bool, ClientError> {
        self.with_lease(self.lease_request(Method::DELETE, lease))
            .await
    }

    /// Reads a balance. `token` fences the read if the endpoint supports fencing.
    pub(crate) async fn balance(
        &self,
        act: Act,
        account: &str,
        token: Option<&str>,
    ) -> Result<i64, ClientError> {
        let request = self.account_request(Method::GET, act, account, token);
        let answer = request.send().await?;
        match answer.status() {
            StatusCode::OK => Ok(answer.json::<AccountBody>().await?.balance),
            _ => Err(unexpected(answer).await),
        }
    }

    /// Asks the service to do a job for a slot, which adds to the account of the job.
    pub(crate) async fn run_job(
        &self,
        act: Act,
        (id, slot): (&str, &str),
        add: i64,
        token: &str,
    ) -> Result<WriteAnswer, ClientError> {
        let path = format!("{}/{id}/{slot}", act.jobs_path());
        let request = self.request(Method::PUT, &path).json(&RunBody { add });
        self.written(request, Some(token)).await
    }

    /// Writes a balance.
    pub(crate) async fn write(
        &self,
        act: Act,
        account: &str,
        balance: i64,
        token: Option<&str>,
    ) -> Result<WriteAnswer, ClientError> {
        let request = self.account_request(Method::PUT, act, account, None);
        self.written(request.json(&BalanceBody { balance }), token)
            .await
    }

    async fn written(
        &self,
        request: RequestBuilder,
        token: Option<&str>,
    ) -> Result<WriteAnswer, ClientError> {
        let sent = match token {
            Some(token) => self.http.send(request, &token.parse::<Credential>()?).await,
            None => return unfenced(request.send().await?).await,
        };
        match sent {
            Ok(answer) => Ok(accepted(answer.status(), true)),
            Err(WriteError::NotFenced(answer)) => Ok(accepted(answer.status(), false)),
            Err(WriteError::Refused(refusal)) => refused(&refusal),
            Err(WriteError::NoAnswer(error)) => Err(error.into()),
            Err(error) => Err(ClientError::Transport(error.to_string())),
        }
    }

    async fn with_lease(&self, request: RequestBuilder) -> Result<bool, ClientError> {
        let answer = request.send().await?;
        match answer.status() {
            status if status.is_success() => Ok(true),
            StatusCode::PRECONDITION_FAILED => Ok(false),
            _ => Err(unexpected(answer).await),
        }
    }

    fn lease_request(&self, method: Method, lease: &LeaseBody) -> RequestBuilder {
        self.request(method, &format!("/v1/leases/{}", lease.resource))
            .header(&FENCING_TOKEN, Secret(&lease.fencing_token))
    }

    fn account_request(
        &self,
        method: Method,
        act: Act,
        account: &str,
        token: Option<&str>,
    ) -> RequestBuilder {
        let request = self.request(method, &format!("{}/{account}", act.accounts_path()));
        match token {
            Some(token) => request.header(&FENCING_TOKEN, Secret(token)),
            None => request,
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match self.name {
            Some(name) => request.header(CLIENT_HEADER, name.as_str()),
            None => request,
        }
    }
}

/// The text of a header that `Debug` of a request must not show.
struct Secret<'a>(&'a str);

impl TryFrom<Secret<'_>> for HeaderValue {
    type Error = InvalidHeaderValue;

    fn try_from(Secret(text): Secret<'_>) -> Result<Self, InvalidHeaderValue> {
        let mut value = Self::from_str(text)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl ClientError {
    /// Whether the cause is a server behind the gateway that is down, and not a fault of this
    /// program.
    pub(crate) const fn server_lost(&self) -> bool {
        matches!(
            self,
            Self::Unexpected {
                status: 502..=504,
                ..
            }
        )
    }
}

impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(with_sources(&error))
    }
}

/// The result of a write that presented no token.
async fn unfenced(answer: Response) -> Result<WriteAnswer, ClientError> {
    match answer.status() {
        status if status.is_success() => Ok(accepted(status, false)),
        _ => refused(&Refusal::read(answer).await),
    }
}

const fn accepted(status: StatusCode, fenced: bool) -> WriteAnswer {
    let status = status.as_u16();
    WriteAnswer::Accepted { status, fenced }
}

/// A refusal of the token is a usable answer. Any other refusal is an error.
fn refused(refusal: &Refusal) -> Result<WriteAnswer, ClientError> {
    let status = refusal.status().as_u16();
    if !matches!(status, 403 | 409 | 412) {
        return Err(refusal.into());
    }
    let problem = text(refusal, "type").unwrap_or_default().to_owned();
    Ok(WriteAnswer::Refused { status, problem })
}

async fn unexpected(answer: Response) -> ClientError {
    (&Refusal::read(answer).await).into()
}

fn text<'a>(refusal: &'a Refusal, member: &str) -> Option<&'a str> {
    refusal.member(member)?.as_str()
}

impl From<&Refusal> for ClientError {
    fn from(refusal: &Refusal) -> Self {
        let detail = text(refusal, "detail").or_else(|| text(refusal, "title"));
        Self::Unexpected {
            status: refusal.status().as_u16(),
            detail: detail.unwrap_or_default().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_of_ours_prints_its_token() {
        let client = GatewayClient::new("http://127.0.0.1:1".to_owned(), None).unwrap();
        let lease = LeaseBody {
            resource: "account:1".to_owned(),
            token: "34".parse().unwrap(),
            issuer: "redis".to_owned(),
            holder: "0123456789abcdef0123456789abcdef".to_owned(),
            ttl_ms: 1000,
            remaining_ms: 1000,
            fencing_token: "34;res=\"account:1\";holder=\"0123\"".to_owned(),
        };
        let requests = [
            client.lease_request(Method::DELETE, &lease),
            client.account_request(Method::GET, Act::Fenced, "1", Some(&lease.fencing_token)),
        ];
        for request in requests {
            let request = request.build().unwrap();
            let value = &request.headers()[&FENCING_TOKEN];
            assert!(value.is_sensitive() && value == lease.fencing_token.as_str());
            assert!(!format!("{request:?}").contains("0123"), "{request:?}");
        }
    }
}
