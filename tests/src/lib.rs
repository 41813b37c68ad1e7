//! The end-to-end harness: real servers and real processes, which end with the test that started
//! them.
//!
//! - [`python`]: programs in Python, with the packages that they need from PyPI.
//! - [`servers`]: Redis, Postgres, MySQL and others as child processes on free loopback ports.
//! - [`counted`]: the metrics that are exported for alarms.
//! - [`database_client`]: `psql`, `mariadb` and `sqlite3`, as people use them.
//! - [`documented`]: the examples of the documentation, exactly as printed.
//! - [`history`]: the events of a run of many tasks, and whether they can all have happened.
//! - [`ledger`]: a value that many tasks add to under a lock, and its twin that nothing protects.
//! - [`load`]: tasks that add to ledgers under locks.
//! - [`observer`]: looks at a Redis server directly, without the lock API.
//! - [`port`]: ports without a listener.
//! - [`process`]: the workspace's own programs as child processes that a test can stop at any
//!   moment.
//! - [`project`]: the files and packages of the workspace, for the tests that check them.
//! - [`proxy`]: network faults between a client and its server.
//! - [`wall_clock`]: the time of day as one server sees it.
//! - [`warden`]: the process that outlives a killed test for long enough to clean up after it.
#![forbid(unsafe_code)]
#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "only the tests of this workspace use it"
)]

pub mod counted;
pub mod database_client;
pub mod depositor;
pub mod documented;
pub mod history;
pub mod idle;
pub mod ledger;
pub mod load;
pub mod observer;
pub mod port;
pub mod process;
pub mod project;
pub mod proxy;
pub mod python;
pub mod servers;
pub mod signal;
pub mod waits;
pub mod wakes;
pub mod wall_clock;
pub mod warden;

/// The examples of the project's README, compiled, and run where they need no server.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
pub struct Readme;

/// The examples of the page about HTTP services, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/http.md")]
#[derive(Debug)]
pub struct Http;

/// The examples of the page about jobs and leaders, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/jobs-and-leaders.md")]
#[derive(Debug)]
pub struct JobsAndLeaders;

/// The example of the page with questions, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/questions.md")]
#[derive(Debug)]
pub struct Questions;

/// The beginning of a lock service of one's own, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/lock-services/of-your-own.md")]
#[derive(Debug)]
pub struct LockServiceOfYourOwn;
