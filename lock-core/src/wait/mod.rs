//! How a process waits: rules for its tasks among each other, apart from any lock service.

mod cohort;

pub use self::cohort::Cohort;
