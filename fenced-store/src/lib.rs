//! Database transactions and HTTP handlers that refuse stale fencing tokens.
#![forbid(unsafe_code)]

mod error;
mod receipt;

pub use self::{error::FenceError, receipt::Receipt};
