//! The secret of a holder is in no error, no log and no trace of our crates or of the database.
//!
//! Every path that ends in an error is taken, with the most detailed logs. The control: the same
//! search finds the texts that may be there, that is, the holder's digest and the resource's name.

mod databases;
mod trace;
mod witness;
mod workload;
