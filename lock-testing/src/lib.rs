//! Tools for your own tests: does my code survive a pause, a lost reply, a late packet?
//!
//! - [`pause`]: stops your critical section at each of its awaits for longer than its lease, lets a
//!   rival run, and checks your invariant. Start here.
//! - [`DropAt`]: drops a future at one of its awaits, as `select!` or a client that hangs up does.
//! - [`Process`]: a simulated client process that can be frozen together with its watchdog.
//! - [`ManualClock`]: a clock that stands still until you move it, with random numbers from a seed
//!   that repeats a run.
//! - [`FencedCell`]: a protected resource in memory.
//! - [`Chaos`]: a lock service that loses, delays and repeats messages.
//!
//! All these tools run on one thread, without I/O and without sleeping.
//!
//! - [`conformance`]: the cases that every lock service has to pass, ours or yours.
#![forbid(unsafe_code)]

mod chaos;
pub mod conformance;
mod dropped;
mod fenced_cell;
mod manual_clock;
pub mod pause;
mod process;
mod round_trip;

pub use self::{
    chaos::{Chaos, Counts, Fault, Gate, Until, WakeFault},
    dropped::DropAt,
    fenced_cell::{FencedCell, Refused},
    manual_clock::ManualClock,
    process::Process,
};
