//! What a client of the gateway does, over HTTP and nothing else.

use std::{error::Error as _, time::Duration};

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;

use crate::{
    cli::millis,
    events::{Act, ClientName},
    failure::Failure,
    gateway::wire::{AccountBody, AcquireBody, BalanceBody, CLIENT_HEADER, LeaseBody, RenewBody},
};

/// A client of one gateway.
#[derive(Clone, Debug)]
pub(crate) struct GatewayClient {
    http: reqwest::Client,
    base: String,
    name: Option<ClientName>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteAnswer {
    /// It is in the store. `fenced` only if the store says that it compared the token.
    Accepted { status: u16, fenced: bool },
    /// It was not taken: the token is not good (any more).
    Refused { status: u16, problem: String },
}

/// Why there is no usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The gateway did not answer.
    #[error("no answer from the gateway: {0}")]
    Transport(String),
    /// It answered with something else than what was asked for.
    #[error("the gateway answered {status}: {detail}")]
    Unexpected { status: u16, detail: String },
}

/// What we read of a problem document (RFC 9457).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: String,
}

impl GatewayClient {
    /// A client without a name is not recorded.
    ///
    /// # Errors
    /// If the operating system refuses what an HTTP client needs.
    pub(crate) fn new(base: String, name: Option<ClientName>) -> Result<Self, ClientError> {
        // The gateway is on this machine: a proxy in the environment has no business here.
        let http = reqwest::Client::builder()
            .no_proxy()
            // Clients are stopped for a while, and the gateway closes connections that are idle.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { http, base, name })
    }

    /// A client for whoever directs the scenario: its requests are not part of the story.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn for_director(base: String) -> Result<Self, Failure> {
        Self::new(base, None).map_err(|error| Failure::Machine {
            doing: "making an HTTP client",
            source: std::io::Error::other(error),
        })
    }

    /// Asks for a lease; `None` if somebody else still held it after `wait`.
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

    /// Reads a balance. `token` fences the read where the endpoint knows fencing.
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

    /// Writes a balance.
    pub(crate) async fn write(
        &self,
        act: Act,
        account: &str,
        balance: i64,
        token: Option<&str>,
    ) -> Result<WriteAnswer, ClientError> {
        let request = self.account_request(Method::PUT, act, account, token);
        let answer = request.json(&BalanceBody { balance }).send().await?;
        let status = answer.status();
        if status.is_success() {
            let fenced = answer.headers().contains_key("fencing-accepted");
            Ok(WriteAnswer::Accepted {
                status: status.as_u16(),
                fenced,
            })
        } else if matches!(status.as_u16(), 403 | 409 | 412) {
            let problem = problem(answer).await.kind;
            Ok(WriteAnswer::Refused {
                status: status.as_u16(),
                problem,
            })
        } else {
            Err(unexpected(answer).await)
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
            .header("fencing-token", &lease.fencing_token)
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
            Some(token) => request.header("fencing-token", token),
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

impl ClientError {
    /// Whether a server behind the gateway is down, rather than that something is wrong with us.
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

/// The text of the whole chain: the outermost error alone says only "error sending request".
impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::Transport(text)
    }
}

async fn unexpected(answer: Response) -> ClientError {
    let status = answer.status().as_u16();
    let Problem { title, detail, .. } = problem(answer).await;
    let detail = if detail.is_empty() { title } else { detail };
    ClientError::Unexpected { status, detail }
}

/// An answer without a problem document gives an empty one.
async fn problem(answer: Response) -> Problem {
    answer.json().await.unwrap_or_default()
}
