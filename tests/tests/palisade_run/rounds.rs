//! Many rounds, each with a fault at another moment.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use rustix::process::{Signal, kill_process};

use crate::{
    ends::{TTL, alive_at_the_next_grant, the_control_lives_on},
    support::{Marked, Place, palisade_run},
};

const ROUNDS: u64 = 200;
const AT_ONCE: usize = 20;

/// Catches: a moment in which a fault lets the command outlive its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_200_rounds_no_command_is_alive_after_its_lease() {
    let round = async |round: u64| {
        // A file of its own, because a process that is stopped may keep the file.
        let place = Place::new();
        let url = place.url();
        let script = "trap '' TERM; sleep 600 & while true; do wait; done";
        let arguments = ["--resource", "r", "--lock", &url, "--ttl", TTL];
        let command = ["--", "sh", "-c", script];
        let run = Marked::spawn(palisade_run(&[&arguments[..], &command].concat()));
        run.until_it_has(2).await;
        // The fault comes up to two renewals later.
        tokio::time::sleep(Duration::from_millis(round * 13 % 2600)).await;
        let victim = match round % 2 {
            0 => run.guardian(),
            _ => run.supervisor(),
        };
        let signal = match round % 4 {
            0 | 1 => Signal::STOP,
            _ => Signal::KILL,
        };
        kill_process(victim, signal).unwrap();
        alive_at_the_next_grant(&run, &url, "r").await.len()
    };
    let rounds = stream::iter(0..ROUNDS)
        .map(round)
        .buffer_unordered(AT_ONCE)
        .fold(0, async |sum, alive| sum + alive);
    let (alive, ()) = tokio::join!(rounds, the_control_lives_on());
    assert_eq!(
        alive, 0,
        "processes alive after the lease, in {ROUNDS} rounds"
    );
}
