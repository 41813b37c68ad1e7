//! Redis behind a network and a machine that fail.

mod connections;
mod delay;
mod dropped;
mod lost_answers;
mod pushes;
mod random;
pub(super) mod world;
