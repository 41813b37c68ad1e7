//! The lock service on etcd, with real nodes, and with real clients of other projects.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod again;
mod conformance;
mod dropped;
mod etcdctl;
mod far;
mod floors;
mod forced;
mod half_done;
mod late;
mod leak;
mod lengths;
mod many;
mod outages;
mod paused;
mod remembered;
mod without_space;
mod world;
