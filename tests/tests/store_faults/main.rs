//! The fenced store while its database fails: sessions that end, servers that are killed, and what
//! is lost for good.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod grant;
mod lost_marks;
mod power_cut;
mod random;
