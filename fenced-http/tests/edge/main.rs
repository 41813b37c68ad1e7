//! Tests of the public API: the layer, the extractors, the problems and the client.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "reqwest")]
mod client;
#[cfg(feature = "metrics")]
mod counted;
#[cfg(feature = "axum")]
mod extract;
mod grant;
mod layer;
mod problem;
