//! What the store tells over HTTP: receipts, and its errors as problem documents. The rest of the
//! edge is `fenced_http`.

mod fenced;
mod outage;
mod problem;
mod receipt;
#[cfg(feature = "axum")]
mod respond;
