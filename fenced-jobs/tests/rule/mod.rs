//! Jobs and leaders as behaviour: one case for each sentence of the rule, and the same cases for
//! every database.
//!
//! The databases have the same harnesses as in the cases of the store. The end-to-end tests mount
//! this module too.

mod lead;
mod once;
mod pauses;
mod schedule;

pub(crate) use self::{lead::*, once::*, pauses::*, schedule::*};

/// Makes a named test of each case, as for the cases of the store.
macro_rules! job_cases {
    ($harness:ty) => {
        job_cases!($harness:
            a_slot_runs_once,
            a_runner_that_is_overtaken_stores_nothing,
            a_slot_that_failed_leaves_nothing_and_is_due_later,
            a_slot_that_failed_is_due_again_by_itself,
            a_slot_is_taken_over_from_its_last_step,
            a_step_that_failed_is_done_again_alone,
            old_times_are_forgotten_and_count_as_done,
            a_job_is_held_by_one_runner,
            other_jobs_do_not_disturb,
            a_deposed_leader_is_refused,
            a_leader_that_was_refused_leads_again,
            missed_times_run_in_order_and_each_once,
            a_schedule_that_is_held_is_looked_at_again_soon,
            a_time_that_failed_keeps_those_after_it_waiting,
            missed_times_are_passed_over,
            a_new_schedule_begins_now,
            a_job_can_be_dropped_at_every_await,
            steps_can_be_dropped_at_every_await,
            a_step_with_an_unknown_outcome_is_followed_by_none,
        );
    };
    ($harness:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                job_rule::$case::<$harness>().await;
            }
        )*
    };
}
pub(crate) use job_cases;

/// Makes a test of each case. A test has one thread, because the simulated stop needs that.
macro_rules! job_pause_cases {
    ($harness:ty) => {
        job_pause_cases!($harness:
            a_job_that_is_stopped_anywhere_is_done_once,
            a_step_that_is_stopped_anywhere_is_done_once,
            a_leader_that_is_stopped_anywhere_overwrites_nothing,
        );
    };
    ($harness:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                job_rule::$case::<$harness>().await;
            }
        )*
    };
}
pub(crate) use job_pause_cases;
