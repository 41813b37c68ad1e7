//! Database transactions that refuse stale fencing tokens.
#![forbid(unsafe_code)]
