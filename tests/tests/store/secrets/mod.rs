//! The secret of a holder is in no error, no log and no trace, neither of ours nor of the database.
//!
//! Every path that ends in an error is taken, with every log as talkative as it can be. The
//! control: the texts that may be there, the holder's digest and the resource's name, are found by
//! the same search.

mod databases;
mod trace;
mod witness;
mod workload;
