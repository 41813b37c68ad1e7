//! Redlock on real servers, and what becomes of its tokens when nodes, clocks and clients fail.

mod access;
mod clocks;
mod dropped;
mod healing;
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
