//! One lock service takes the place of another in front of a store, with `palisade migrate`: real
//! servers, clients that go on all the while, and clients of the old service that do not know of
//! the handover.

mod command;
mod documented;
mod killed;
mod tally;
mod there_and_back;
mod waiters;
mod world;
mod wrong;
