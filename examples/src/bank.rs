//! `service Bank { rpc Update(Update) returns (Balance); }`, for the program `tonic_service`.
#![allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::clone_on_ref_ptr,
    clippy::exhaustive_structs,
    reason = "made by tonic-build"
)]

/// An account, and its new balance.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Update {
    #[prost(int64, tag = "1")]
    pub id: i64,
    #[prost(int64, tag = "2")]
    pub balance: i64,
}

/// The balance of an account.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Balance {
    #[prost(int64, tag = "1")]
    pub balance: i64,
}

include!(concat!(env!("OUT_DIR"), "/bank.Bank.rs"));
