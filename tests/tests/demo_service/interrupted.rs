//! However the scenario ends, none of its processes stays behind, stopped or not.

use std::{os::fd::OwnedFd, time::Duration};

use e2e::{
    process::Process,
    servers::Redis,
    signal::{self, state},
};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::{io::unix::AsyncFd, time::timeout};

/// A scenario whose first client has just been stopped.
struct MidAct {
    scenario: Process,
    client: Pid,
    client_ends: AsyncFd<OwnedFd>,
}

impl MidAct {
    async fn begin(arguments: &[&str]) -> Self {
        let arguments = ["scenario"].iter().chain(arguments);
        let mut scenario = Process::spawn("palisade", arguments);
        let client = loop {
            let line = scenario.line().await.unwrap();
            if let Some((_, pid)) = line.split_once("is stopped by SIGSTOP (pid ") {
                break signal::pid(pid.trim_end_matches(')').parse().unwrap()).unwrap();
            }
        };
        assert_eq!(state(client), Some('T'), "the client is not really stopped");
        let watched = pidfd_open(client, PidfdFlags::empty()).unwrap();
        #[expect(
            deprecated,
            reason = "its successor is unsafe; an OwnedFd stays what it is"
        )]
        let client_ends = AsyncFd::new(watched).unwrap();
        Self {
            scenario,
            client,
            client_ends,
        }
    }

    /// The kernel tells when a process has ended, also to those who are not its parent.
    async fn client_ended(&self) {
        let ended = timeout(Duration::from_secs(20), self.client_ends.readable()).await;
        assert!(ended.is_ok(), "the stopped client was left behind");
    }
}

#[tokio::test]
async fn ctrl_c_and_sigterm_end_the_clients_too() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut act = MidAct::begin(&["--pause", "60s"]).await;
        kill_process(act.scenario.id(), signal).unwrap();
        assert_eq!(act.scenario.finish().await.code(), Some(code));
        act.client_ended().await;
    }
}

#[tokio::test]
async fn a_scenario_that_is_killed_takes_its_clients_along() {
    let act = MidAct::begin(&["--pause", "60s"]).await;
    kill_process(act.scenario.id(), Signal::KILL).unwrap();
    act.client_ended().await;
}

#[tokio::test]
async fn a_client_that_dies_is_told_as_a_failure_of_this_machine() {
    let mut act = MidAct::begin(&["--pause", "0ms"]).await;
    kill_process(act.client, Signal::KILL).unwrap();
    assert_eq!(act.scenario.finish().await.code(), Some(5));
}

#[tokio::test]
async fn a_lock_service_that_dies_is_told_as_unreachable() {
    let redis = Redis::start().await;
    let mut act = MidAct::begin(&["--pause", "60s", "--lock", redis.url()]).await;
    redis.kill().await;
    assert_eq!(act.scenario.finish().await.code(), Some(3));
    act.client_ended().await;
}
