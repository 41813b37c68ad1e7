//! The servers: their URLs, the ways to find and reach them, and the checks whether they are fit.

mod address;
mod cluster;
mod connection;
pub(crate) mod fitness;
pub(crate) mod key_layout;
pub(crate) mod link;
pub(crate) mod nodes;
mod sentinel;
pub(crate) mod service_url;
mod single_flight;
mod slots;
pub(crate) mod tls;
mod turns;
