//! Redlock on real servers, and what becomes of its tokens when nodes, clocks and clients fail.

mod access;
mod clocks;
mod completing;
mod dropped;
mod losses;
mod naive;
mod operating;
mod outages;
mod provisioning;
mod restarts;
mod scripts;
mod slowest;
mod stress;
mod taking_in;
mod world;
