//! The contract, with a lock service in memory behind the cohort.

use std::sync::Arc;

use lock_core::{SystemClock, memory::MemoryBackend};
use lock_testing::conformance::RealTime;
use palisade_cohort::Cohort;

use crate::joining::Joining;

fn cohort() -> Cohort {
    let clock = Arc::new(SystemClock);
    Cohort::new(MemoryBackend::default(), clock, Cohort::PASSES)
}

lock_testing::conformance_tests!(direct, RealTime::new(cohort()));
lock_testing::conformance_tests!(joined, RealTime::new(Joining(cohort())));
