//! The fair queue on a real server: the grants when clients die, give up, or are slow.

mod attempts;
mod beside;
mod ended;
mod fast_paths;
mod handed;
mod handing_on;
mod limits;
mod order;
mod outages;

mod world;
