//! However a test process ends, its servers, its workers and their files end with it.

use std::{path::PathBuf, process::Stdio, time::Duration};

use e2e::signal::state;
use rustix::process::Pid;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
};

/// Several times what a loaded machine needs to shut down a Postgres.
const BOUND: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Owned {
    pids: Vec<i32>,
    dirs: Vec<PathBuf>,
}

impl Owned {
    /// A zombie counts as dead, whether or not init has waited for it already.
    fn living(&self) -> Vec<i32> {
        let lives = |pid: &&i32| !matches!(state(Pid::from_raw(**pid).unwrap()), None | Some('Z'));
        self.pids.iter().filter(lives).copied().collect()
    }

    fn present(&self) -> Vec<&PathBuf> {
        self.dirs.iter().filter(|dir| dir.exists()).collect()
    }
}

/// Catches: servers and folders that pile up on the machine of a developer.
#[tokio::test]
async fn a_killed_test_process_leaves_nothing_behind() {
    let (mut owner, owned) = start_owner().await;
    assert_eq!(owned.living(), owned.pids);
    assert_eq!(owned.present().len(), owned.dirs.len());

    // The wardens and the worker have inherited this pipe: it ends when the last of them has ended.
    let mut stderr = owner.stderr.take().unwrap();
    owner.kill().await.unwrap();
    let mut complaints = String::new();
    let all_gone = tokio::time::timeout(BOUND, stderr.read_to_string(&mut complaints));
    all_gone.await.expect("the wardens live on").unwrap();

    assert_eq!(owned.living(), [] as [i32; 0], "{complaints}");
    assert_eq!(owned.present(), [] as [&PathBuf; 0], "{complaints}");
    assert_eq!(complaints, "");
}

async fn start_owner() -> (Child, Owned) {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_e2e-server-owner"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(owner.stdout.take().unwrap());
    let mut line = String::new();
    let read = tokio::time::timeout(BOUND, stdout.read_line(&mut line));
    read.await.expect("the owner does not start").unwrap();
    (owner, serde_json::from_str(&line).expect(&line))
}
