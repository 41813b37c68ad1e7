//! The two programs as their users use them: the gateway over HTTP, the commands of operators, and
//! the scenario.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accounts;
mod administration;
mod bad_bodies;
mod bad_clients;
mod bad_connections;
mod bad_headers;
mod bad_requests;
mod balancer;
mod by_url;
mod clients;
mod contract;
mod depositor;
mod doctor;
mod exit_codes;
mod failover;
mod fuzzed;
mod gateway;
mod gateway_jobs;
mod host_names;
mod idempotency;
mod instances;
mod interrupted;
mod jobs;
mod keys;
mod leases;
mod live;
mod live_page;
mod migrations;
mod openapi;
mod operator_commands;
mod operators;
mod product;

mod readiness;
mod redlock;
mod request_ids;
mod rights;
mod scenario;
mod settings;
mod shutdown;
mod shutdown_under_load;
mod signatures;
mod simulated;
mod slow_store;
mod traces;
mod unread_answers;
mod unread_log;
mod without_arguments;
