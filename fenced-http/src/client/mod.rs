//! The client's side: the client sends the token with a write, and reads the answer.
//!
//! A [`Credential`] is the value of the header, and checks a 2xx of any HTTP client.
//! [`Refusal::new`] reads any other answer. With the feature `reqwest`, `Sender` is a client that
//! does all of this.
//!
#![cfg_attr(all(feature = "axum", feature = "reqwest"), doc = "```")]
#![cfg_attr(not(all(feature = "axum", feature = "reqwest")), doc = "```ignore")]
//! use fenced_http::client::{Advice, Credential, Sender, WriteError};
//! # use axum::{Router, routing::put};
//! use http::Method;
//! # use fenced_http::{Fenced, FencingLayer, Scope, Problem, ProblemType, Unsigned};
//! # use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
//!
//! /// Writes, unless another holder has claimed the account since.
//! async fn deposit(url: &str, credential: &Credential) -> Result<(), WriteError> {
//!     let sender = Sender::new(reqwest::Client::builder())?;
//!     match sender.send(sender.request(Method::PUT, url).body("10"), credential).await {
//!         Ok(_) => Ok(()), // 2xx, and the store has compared the token
//!         Err(WriteError::Refused(refusal)) if refusal.advice() == Advice::AcquireAgain => {
//!             // The lease has ended: forget what was computed, acquire and read again.
//!             Err(WriteError::Refused(refusal))
//!         }
//!         Err(error) => Err(error),
//!     }
//! }
//! #
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
//! # let (verifier, any) = (Unsigned::new(issuer.clone()), Scope::compared_by_handler());
//! # let layer = || FencingLayer::required(verifier.clone(), any.clone());
//! # let stale = async |_: Fenced| Problem::new(ProblemType::TOKEN_STALE);
//! # let router = Router::new()
//! #     .route("/accounts/42", put(stale).route_layer(layer()))
//! #     .route("/forgetful/42", put(async || "written").route_layer(layer()));
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let addr = listener.local_addr()?;
//! # tokio::spawn(axum::serve(listener, router).into_future());
//! # let sequencer = Sequencer::new(issuer, resource, FencingToken::new(33)?, Holder::random());
//!
//! let credential = Credential::new(&sequencer)?; // or what a gateway has signed: `text.parse()?`
//! let error = deposit(&format!("http://{addr}/accounts/42"), &credential).await.unwrap_err();
//! assert!(error.to_string().contains("fencing-token-stale"));
//!
//! // The client notices a service that writes without a check by its store.
//! let error = deposit(&format!("http://{addr}/forgetful/42"), &credential).await.unwrap_err();
//! assert!(matches!(error, WriteError::NotFenced(_)));
//! # Ok(())
//! # }
//! ```

mod advice;
mod credential;
#[cfg(feature = "reqwest")]
mod error;
mod not_fenced;
#[cfg(feature = "reqwest")]
mod read;
mod refusal;
#[cfg(feature = "reqwest")]
mod sender;

pub use self::{advice::Advice, credential::Credential, not_fenced::NotFenced, refusal::Refusal};
#[cfg(feature = "reqwest")]
pub use self::{error::WriteError, sender::Sender};
