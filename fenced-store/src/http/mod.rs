//! Fencing over HTTP: the `Fencing-Token` header, a tower layer that checks it, and what a client
//! is answered.
//!
//! A client acquires a lock and gets a [`Sequencer`](lock_core::Sequencer). It sends it along with
//! every write. The layer refuses requests whose token is missing, malformed, not authentic or for
//! another resource; the store refuses, in the transaction of the write, those whose token is
//! *stale*. **The layer cannot do the second part**: between its look and the write a later holder
//! may take over. A handler that ignores the token is not fenced, whatever layers are around it.
//!
#![cfg_attr(all(feature = "axum", feature = "sqlite"), doc = "```")]
#![cfg_attr(not(all(feature = "axum", feature = "sqlite")), doc = "```ignore")]
//! use axum::{Router, extract::State, http::StatusCode, routing::put};
//! use fenced_store::{
//!     FenceError, Receipt, SqliteFencedStore,
//!     http::{Fenced, FencingLayer, Scope, Unsigned},
//! };
//! use lock_core::{InvalidName, Issuer};
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
//!     let fencing = FencingLayer::required(verifier).resource(Scope::path("/accounts/", ""));
//!     let accounts = put(deposit).route_layer(fencing);
//!     Ok(Router::new().route("/accounts/{name}", accounts).with_state(store))
//! }
//! ```
//!
//! # The tour
//! 1. [`FencingHeader`]: the grammar of the header, its parser and its writer.
//! 2. [`TokenVerifier`]: is the token authentic? The key ring of `http::signed` says so, with the
//!    feature `signed`; [`Unsigned`] says what can be said without keys.
//! 3. [`Scope`]: which resource is the request about? **Give one.** Without it a client that holds
//!    the lock of one account may write another, unless the handler takes what it writes from the
//!    sequencer, as above, or compares.
//! 4. [`FencingLayer`] makes a [`Fencing`] service of any other. It looks at all methods but GET,
//!    HEAD, OPTIONS and TRACE, and leaves those alone. It boxes nothing and keeps the error type: a
//!    refusal is a response. Put it on the route with `MethodRouter::route_layer`, before
//!    `.get(..)`: then what is 404 or 405 stays so.
//! 5. [`Fenced`] is what the handler gets, and hands to the store: the grant, and the number of
//!    the write if the client counts. A route without a layer has it from
//!    `FencedFromState`, any other kind of service from [`Fenced::from_headers`].
//! 6. `FencedTx::commit` gives a [`Receipt`](crate::Receipt), and only a receipt sets
//!    [`FENCING_ACCEPTED`]: where the layer looks, it takes the header off a response that no
//!    receipt is part of. So it does not go around a service that passes on the answers of another
//!    fenced one. A server that does not know the header ignores it, so **a client must
//!    treat a 2xx without `Fencing-Accepted` as a write that was not fenced**: see [`client`].
//!
//! # What a client is answered
//! Every refusal is a [`Problem`] (RFC 9457) with a stable `type`, see [`ProblemType`].
//!
//! | case | status | `type`, after `urn:palisade:problem:` | send it again? |
//! |------|--------|---------------------------------------|----------------|
//! | no token | 428 | `fencing-token-required` | with a token |
//! | not the grammar, too long, several headers | 400 | `fencing-token-malformed` | no |
//! | not authentic; signed, but nobody here checks | 403 | `fencing-token-not-accepted` | no |
//! | for another resource | 403 | `fencing-token-wrong-resource` | no |
//! | of another lock service than ours | 403 | `fencing-token-wrong-issuer` | no |
//! | too great to have been issued | 403 | `fencing-token-implausible` | no |
//! | [`Stale`] | 412 | `fencing-token-stale` | never: acquire again |
//! | [`OutOfOrder`] | 412 | `fencing-sequence-stale` | never with this number |
//! | [`NotClaimed`] | 412 | `fencing-token-not-claimed` | after the claim |
//! | [`MarkLost`] | 412 | `fencing-mark-lost` | never: acquire again |
//! | [`DuplicateToken`] | 409 | `fencing-token-holder-conflict` | never: acquire again |
//! | the store is busy, down, or ended the transaction | 503 | `store-unavailable` | later |
//! | [`LeaseLost`]: the service's own lease | 503 | `store-unavailable` | later |
//! | [`CommitUnknown`] | 504 | `outcome-unknown` | read first |
//! | no layer, no tables, no privilege, a bad statement | 500 | `fencing-service-fault` | no |
//!
//! [`Stale`]: crate::FenceError::Stale
//! [`OutOfOrder`]: crate::FenceError::OutOfOrder
//! [`NotClaimed`]: crate::FenceError::NotClaimed
//! [`MarkLost`]: crate::FenceError::MarkLost
//! [`DuplicateToken`]: crate::FenceError::DuplicateToken
//! [`LeaseLost`]: crate::FenceError::LeaseLost
//! [`CommitUnknown`]: crate::FenceError::CommitUnknown
//!
//! 412 and not 409 for a stale token, because 409 invites to read again, merge and resubmit, which
//! is what a holder that lost its lease must not do. 504 carries `"outcome": "unknown"`. In no
//! response is there a holder; the high-water mark is sent as [`Disclose`] says.
//!
//! # Browsers
//! To scripts of another origin a browser shows no header of its own accord. Allow
//! [`FENCING_TOKEN`] in `Access-Control-Allow-Headers`, expose [`FENCING_ACCEPTED`] and
//! [`FENCING_HIGH_WATER`] in `Access-Control-Expose-Headers`, and put the CORS layer outside of
//! this one, so that refusals have those headers too.
//!
//! # Logs
//! The header holds a secret. Values written by [`FencingHeader`] are marked sensitive, and so is
//! what the layer passes on. Layers *outside* of it that print request headers need
//! `SetSensitiveRequestHeadersLayer` of tower-http around them.

mod accepted;
pub mod client;
mod disclose;
#[cfg(feature = "axum")]
mod extract;
mod fenced;
#[cfg(feature = "axum")]
mod from_state;
mod future;
mod header;
mod layer;
mod methods;
mod outage;
mod policy;
mod problem;
mod problem_type;
mod rejection;
#[cfg(feature = "axum")]
mod respond;
mod scope;
mod service;
#[cfg(feature = "signed")]
pub mod signed;
mod store_problem;
mod unsigned;
mod verify;

pub use self::{
    disclose::Disclose,
    fenced::Fenced,
    future::ResponseFuture,
    header::{
        FENCING_ACCEPTED, FENCING_HIGH_WATER, FENCING_TOKEN, FencingHeader, Malformed, Signature,
    },
    layer::FencingLayer,
    problem::Problem,
    problem_type::ProblemType,
    rejection::Rejection,
    scope::Scope,
    service::Fencing,
    unsigned::Unsigned,
    verify::TokenVerifier,
};
#[cfg(feature = "axum")]
pub use self::{extract::FencedRejection, from_state::FencedFromState};
