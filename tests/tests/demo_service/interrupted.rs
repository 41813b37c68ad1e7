//! However the scenario ends, none of its processes is left, stopped or not.

use std::{os::fd::OwnedFd, time::Duration};

use e2e::{
    process::Process,
    signal::{self, state},
};
use futures_util::future::join_all;
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
        let mut scenario = Process::spawn("palisade-demo", arguments);
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

    /// The kernel reports the end of a process, also to processes that are not its parent.
    async fn client_ended(&self) {
        let ended = timeout(Duration::from_secs(20), self.client_ends.readable()).await;
        assert!(ended.is_ok(), "the stopped client was left behind");
    }
}

/// Catches: a client that is left alive, because it is stopped when its scenario ends.
#[tokio::test]
async fn however_a_scenario_ends_it_leaves_no_client_behind() {
    let ends = [
        (Signal::INT, Some(130)),
        (Signal::TERM, Some(143)),
        (Signal::HUP, Some(129)),
        (Signal::KILL, None),
    ];
    join_all(ends.map(async |(signal, code)| {
        let mut act = MidAct::begin(&["--pause", "60s"]).await;
        kill_process(act.scenario.id(), signal).unwrap();
        assert_eq!(act.scenario.finish().await.code(), code);
        act.client_ended().await;
    }))
    .await;
    let mut act = MidAct::begin(&["--pause", "0ms"]).await;
    kill_process(act.client, Signal::KILL).unwrap();
    let told = act.scenario.finish().await.code();
    assert_eq!(
        told,
        Some(5),
        "a client that dies is a failure of this machine"
    );
}
