//! Fencing over HTTP: the `Fencing-Token` header, a tower layer that checks it, and the answers
//! that clients get.
//!
//! A client acquires a lock, gets a [`Sequencer`](lock_core::Sequencer), and sends it along with
//! every write. The layer refuses requests whose token is missing, malformed, not authentic or for
//! another resource. The store refuses a *stale* token, in the transaction of the write. **The
//! layer cannot refuse stale tokens**: between its check and the write a later holder may take
//! over. A handler that ignores the token is not fenced, whatever layers are around it.
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! use axum::{Router, extract::State, http::StatusCode, routing::put};
//! use palisade::{
//!     InvalidName, Issuer,
//!     http::{Fenced, FencingLayer, Scope, Unsigned},
//!     store::{FenceError, Receipt, SqliteFencedStore},
//! };
//!
//! async fn deposit(
//!     State(store): State<SqliteFencedStore>,
//!     fenced: Fenced,
//! ) -> Result<(Receipt, StatusCode), FenceError> {
//!     let mut tx = store.begin(&fenced).await?;
//!     sqlx::query("UPDATE accounts SET balance = balance + 10 WHERE name = $1")
//!         .bind(fenced.resource().as_str())
//!         .execute(&mut *tx)
//!         .await?;
//!     Ok((tx.commit().await?, StatusCode::NO_CONTENT)) // the receipt becomes Fencing-Accepted
//! }
//!
//! fn router(store: SqliteFencedStore) -> Result<Router, InvalidName> {
//!     let verifier = Unsigned::new(Issuer::new("redis")?);
//!     let fencing = FencingLayer::required(verifier, Scope::path("/accounts/", ""));
//!     let accounts = put(deposit).route_layer(fencing);
//!     Ok(Router::new().route("/accounts/{name}", accounts).with_state(store))
//! }
//! ```
//!
//! # The tour
//! 1. [`FencingHeader`]: the grammar of the header, its parser and its writer.
//! 2. [`TokenVerifier`] decides whether the token is authentic. With the feature `signed` that is
//!    the key ring; [`Unsigned`] makes the checks that need no keys.
//! 3. [`Scope`] finds the resource of the request. **Set one.** Without a scope a client that holds
//!    the lock of one account may write to another account, unless the handler takes the resource
//!    from the sequencer, as above, or compares both resources.
//! 4. [`FencingLayer`] turns any service into a [`Fencing`] service. It checks all methods except
//!    GET, HEAD, OPTIONS and TRACE. It boxes nothing and keeps the error type: a refusal is a
//!    response. Add it to the route with `MethodRouter::route_layer`, before `.get(..)`: then 404
//!    and 405 remain as they are.
//! 5. The handler gets a [`Fenced`], and passes it to the store. A service without a layer gets a
//!    `Fenced` from [`Fenced::from_headers`].
//! 6. `FencedTx::commit` of the crate fenced-store returns a `Receipt`, and only a receipt sets
//!    [`FENCING_ACCEPTED`]. For the methods that it checks, the layer removes the header from a
//!    response without a receipt. So do not put the layer around a service that forwards the
//!    answers of another fenced service. A server that does not know the header ignores it, so **a
//!    client must treat a 2xx without `Fencing-Accepted` as a write that was not fenced**: see
//!    [`client`].
//!
//! # The answers that a client gets
//! Every refusal is a [`Problem`] (RFC 9457) with a stable `type`, see [`ProblemType`]. Names such
//! as `Stale` in the table are variants of `FenceError`, the error of the store. With the feature
//! `axum` of fenced-store, a handler can return this error as its response.
//!
//! | case | status | `type`, after `urn:palisade:problem:` | send it again? |
//! |------|--------|---------------------------------------|----------------|
//! | no token | 428 | `fencing-token-required` | with a token |
//! | wrong grammar, too long, several headers | 400 | `fencing-token-malformed` | no |
//! | not authentic, or signed, and not checked here | 403 | `fencing-token-not-accepted` | no |
//! | for another resource | 403 | `fencing-token-wrong-resource` | no |
//! | of another lock service than ours | 403 | `fencing-token-wrong-issuer` | no |
//! | too great to have been issued | 403 | `fencing-token-implausible` | no |
//! | `Stale` | 412 | `fencing-token-stale` | never: acquire again |
//! | `NotClaimed` | 412 | `fencing-token-not-claimed` | after the claim |
//! | `MarkLost` | 412 | `fencing-mark-lost` | never: acquire again |
//! | `DuplicateToken` | 409 | `fencing-token-holder-conflict` | never: acquire again |
//! | the store is busy, down, or ended the transaction | 503 | `store-unavailable` | later |
//! | `LeaseLost`: the service's own lease | 503 | `store-unavailable` | later |
//! | `CommitUnknown` | 504 | `outcome-unknown` | read first |
//! | no layer, no tables, no privilege, a bad statement | 500 | `fencing-service-fault` | no |
//! | `Aborted`: the service went on after an error | 500 | `fencing-service-fault` | read first |
//!
//! A handler that acquires the lease itself, and whose client has no token, answers with a
//! `FencedLockError` of fenced-store: a 503 where another try may help, a 504 where the
//! write may have been made, and a 500 where only an operator can help.
//!
//! A stale token gets 412 and not 409, because 409 invites the client to read again, merge and
//! resubmit, which a holder that lost its lease must not do. The 504, and the 500 of `Aborted`,
//! have the member `"outcome": "unknown"`. No response contains a holder. The refusal of a stale
//! token contains the high-water mark, in [`FENCING_HIGH_WATER`].
//!
//! # Caches
//! The answer to each request that the layer checks has `Vary: Fencing-Token`, so that no cache
//! gives the answer to a request with another token or with none. An answer with
//! [`FENCING_ACCEPTED`] has `Cache-Control: no-store`, whatever the handler has set, because a
//! repeated answer would say "accepted" without a check by the store. All refusals have
//! `Cache-Control: no-store`, too.
//!
//! # Browsers
//! By default a browser hides these headers from scripts of another origin. Allow [`FENCING_TOKEN`]
//! in `Access-Control-Allow-Headers`, expose [`FENCING_ACCEPTED`] and [`FENCING_HIGH_WATER`] in
//! `Access-Control-Expose-Headers`, and put the CORS layer outside of this one, so that refusals
//! have the CORS headers, too.
//!
//! # Logs
//! The header contains a secret. Values that [`FencingHeader`] writes, and values that the layer
//! passes on, are marked as sensitive. Layers *outside* of it that print request headers need
//! `SetSensitiveRequestHeadersLayer` of tower-http around them.

#![forbid(unsafe_code)]

mod accepted;
mod caches;
pub mod client;
mod counted;
#[cfg(feature = "axum")]
mod extract;
mod fenced;
mod fencing;
mod future;
mod header;
mod layer;
mod methods;
mod policy;
mod problem;
mod problem_type;
mod rejection;
#[cfg(feature = "axum")]
mod respond;
mod scope;
#[cfg(feature = "signed")]
pub mod signed;
mod unsigned;
mod verify;

#[doc(hidden)]
pub use self::accepted::Accepted;
#[cfg(feature = "axum")]
pub use self::extract::FencedRejection;
pub use self::{
    fenced::Fenced,
    fencing::Fencing,
    future::ResponseFuture,
    header::{
        FENCING_ACCEPTED, FENCING_HIGH_WATER, FENCING_TOKEN, FencingHeader, Malformed, Signature,
    },
    layer::FencingLayer,
    problem::Problem,
    problem_type::ProblemType,
    rejection::Rejection,
    scope::Scope,
    unsigned::Unsigned,
    verify::TokenVerifier,
};
