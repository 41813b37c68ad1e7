//! Every protocol holds in every scenario of its model, and breaks without any one of its rules.
#![forbid(unsafe_code)]

mod cohort;
mod cohort_controls;
mod handover;
mod lease_sql;
mod leases;
mod line;
mod notices;
mod queue;
mod queue_controls;
mod redlock;
mod redlock_clearing;
mod redlock_controls;
mod redlock_holding;
mod redlock_provision;
mod renewal;
mod store_rule;
