//! The answers of the store over HTTP and gRPC.
#![cfg(all(feature = "axum", feature = "sqlite"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod accounts;
mod grpc;
mod problems;
mod store;
