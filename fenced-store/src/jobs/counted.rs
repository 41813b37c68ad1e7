//! What is worth an alert about jobs.

use lock_core::backend::metric::{JOB_RUNS, JOBS_LATE, JOBS_TAKEN_OVER};

use crate::counted::count;

/// Makes the figures begin at zero.
pub(crate) fn begin() {
    for result in ["ran", "done", "held", "backing_off", "failed", "lost"] {
        count(JOB_RUNS, &[("result", result)], 0);
    }
    count(JOBS_TAKEN_OVER, &[], 0);
    count(JOBS_LATE, &[], 0);
}

/// A job was asked to run a slot: what became of it.
pub fn job_run(result: &'static str) {
    count(JOB_RUNS, &[("result", result)], 1);
}

/// A slot was taken over from its last committed step.
pub fn job_taken_over() {
    count(JOBS_TAKEN_OVER, &[], 1);
}

/// A slot of a schedule ran after a newer one was due.
pub fn job_late() {
    count(JOBS_LATE, &[], 1);
}
