//! A fenced transaction, from `begin` to its receipt.
//!
//! A caller starts in `begin/`: [`Begin`] collects the grants, and awaiting it gives a [`FencedTx`]
//! (`fenced_tx.rs`), whose commit makes a [`Receipt`]. Each dialect gets the grants as a
//! `BeginRequest` and answers with an `OpenTx` (`open_tx.rs`), which a task rolls back if it is
//! dropped. `uninterrupted.rs` finishes a call whose future is dropped, and `leaked.rs` gets a
//! connection that was not left inside a transaction.

pub(crate) mod begin;
pub(crate) mod begin_request;
mod fenced_tx;
pub(crate) mod leaked;
pub(crate) mod open_tx;
mod receipt;
mod savepoint;
pub(crate) mod tx_name;
pub(crate) mod uninterrupted;

pub use self::{
    begin::{Begin, Executed, Presented},
    fenced_tx::FencedTx,
    receipt::Receipt,
    savepoint::FencedSavepoint,
};
