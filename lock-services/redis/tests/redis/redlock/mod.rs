//! Redlock on real servers, and what becomes of its tokens when nodes, clocks and clients fail.

mod access;
mod clocks;
mod dropped;
mod healing;
mod losses;
pub(super) mod naive;
mod operating;
mod outages;
mod provisioning;
mod restarts;
mod scripts;
mod slowest;
mod taking_in;
pub(super) mod world;
