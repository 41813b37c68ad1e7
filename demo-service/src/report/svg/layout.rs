//! The heights of the lanes, from the top of the act.

pub(super) const CLIENT_1: f64 = 78.0;
pub(super) const LOCK: f64 = 140.0;
pub(super) const CLIENT_2: f64 = 202.0;
pub(super) const STORAGE: f64 = 264.0;
