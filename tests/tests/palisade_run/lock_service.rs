//! The lock service fails in the middle of a command, or ends its lease.

use std::{process::Stdio, time::Duration};

use e2e::{
    proxy::{Fault, Proxy},
    servers::{DatabaseServer, Redis},
};
use sqlx::{ConnectOptions, postgres::PgConnectOptions};
use tokio::io::AsyncReadExt;

use crate::support::{Marked, palisade_run};

/// A command that reports when it ends, and how.
const SCRIPT: &str = "trap 'echo terminated; exit 3' TERM; echo begun; sleep $0 & wait; echo done";

struct Watched {
    run: Marked,
    proxy: Proxy,
    redis: Redis,
}

impl Watched {
    /// A run with this ttl, whose command takes this time and whose lock service is behind a proxy.
    async fn begin(ttl: &str, seconds: &str) -> Self {
        let redis = Redis::start().await;
        let proxy = Proxy::start(redis.url()).await;
        let mut run = palisade_run(&[
            "--resource",
            "r",
            "--lock",
            &proxy.url("redis"),
            "--ttl",
            ttl,
            "--",
            "sh",
            "-c",
            SCRIPT,
            seconds,
        ]);
        run.stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = Marked::spawn(run);
        Self { run, proxy, redis }
    }

    async fn said(&mut self) -> (Option<i32>, String, String) {
        let (mut out, mut errors) = (String::new(), String::new());
        let code = self.run.ended().await.code();
        let child = &mut self.run.child;
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .await
            .unwrap();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .await
            .unwrap();
        (code, out, errors)
    }
}

/// Catches: a command that is ended because the lock service was gone for a moment.
#[tokio::test]
async fn a_lock_service_that_is_away_for_less_than_a_ttl_costs_nothing() {
    let mut watched = Watched::begin("6s", "4").await;
    watched.run.until_it_has(2).await;
    for _ in 0..2 {
        watched.proxy.inflict(Fault::Cut);
        watched.proxy.inflict_on_new(Fault::Cut);
        tokio::time::sleep(Duration::from_millis(700)).await;
        watched.proxy.let_go();
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    let (code, out, errors) = watched.said().await;
    assert_eq!((code, out.as_str()), (Some(0), "begun\ndone\n"), "{errors}");
}

/// Catches: a command that goes on although its lease has ended at a service that does not answer.
#[tokio::test]
async fn a_lock_service_that_is_away_for_longer_ends_the_command_in_time() {
    let mut watched = Watched::begin("10s", "600").await;
    watched.run.until_it_has(2).await;
    watched.proxy.inflict(Fault::BlackHole);
    watched.proxy.inflict_on_new(Fault::BlackHole);
    let url = watched.redis.url().to_owned();
    let alive = crate::ends::alive_at_the_next_grant(&watched.run, &url, "r").await;
    assert!(alive.is_empty());
    let (code, out, errors) = watched.said().await;
    assert_eq!(
        (code, out.as_str()),
        (Some(124), "begun\nterminated\n"),
        "{errors}"
    );
    assert!(errors.contains("not renewed in time"), "{errors}");
}

/// Catches: a command that goes on after an operator has ended its lease.
#[tokio::test]
async fn a_lease_that_was_released_by_force_ends_the_command_at_once() {
    let mut watched = Watched::begin("10s", "600").await;
    watched.run.until_it_has(2).await;
    let locks = palisade::connect(watched.redis.url()).await.unwrap();
    locks.force_release("r").await.unwrap();
    let (code, out, errors) = watched.said().await;
    assert_eq!(
        (code, out.as_str()),
        (Some(124), "begun\nterminated\n"),
        "{errors}"
    );
    assert!(errors.contains("was lost"), "{errors}");
}

fn address(url: &str) -> String {
    let options: PgConnectOptions = url.parse().unwrap();
    format!("tcp://{}:{}", options.get_host(), options.get_port())
}

/// Catches: a command that is ended, or whose slot is not marked, because a standby takes over.
#[tokio::test]
async fn a_database_that_fails_over_costs_the_command_nothing() {
    let first = DatabaseServer::postgres(&[]).await;
    let standby = first.standby().await;
    let proxy = Proxy::start(&address(first.url())).await;
    let options: PgConnectOptions = first.url().parse().unwrap();
    let url = options.host("127.0.0.1").port(proxy.port()).to_url_lossy();
    let mut run = palisade_run(&[
        "--resource",
        "r",
        "--store",
        url.as_str(),
        "--ttl",
        "15s",
        "--once",
        "slot",
        "--",
        "sh",
        "-c",
        "echo begun; sleep 8; echo done",
    ]);
    run.stdout(Stdio::piped());
    let mut run = Marked::spawn(run);
    run.until_it_has(2).await;
    first.shut_down().await;
    standby.promote().await;
    proxy.point_to(&address(standby.url()));
    proxy.inflict(Fault::Cut);
    let mut out = String::new();
    run.child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    assert_eq!(out, "begun\ndone\n");
    assert_eq!(run.ended().await.code(), Some(0));
    let again = crate::support::output(&[
        "--resource",
        "r",
        "--store",
        url.as_str(),
        "--once",
        "slot",
        "--verbose",
        "--",
        "false",
    ])
    .await;
    let said = crate::support::stderr(&again);
    assert_eq!(again.status.code(), Some(0), "{said}");
    assert!(said.contains("is done already"), "{said}");
}
