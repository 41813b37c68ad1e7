//! SIGTERM while many clients write: every write has its answer, or was not made.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use rustix::process::{Signal, kill_process};
use sqlx::{Connection, SqliteConnection};
use tokio::time::timeout;

use crate::gateway::Gateway;

const CLIENTS: usize = 24;

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes 1, 2, 3 .. until the gateway is gone, and returns the last number that was acknowledged.
async fn write_on(gateway: &Gateway, id: usize, token: &str, written: &AtomicU64) -> i64 {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/v1/accounts/{id}", gateway.url);
    let mut last = 0;
    loop {
        let body = serde_json::json!({ "balance": last + 1 });
        let request = http.put(&url).header("fencing-token", token).json(&body);
        let Ok(answer) = request.send().await else {
            return last;
        };
        let status = answer.status().as_u16();
        if status == 200 {
            assert!(answer.headers().contains_key("fencing-accepted"));
            last += 1;
            written.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(status, 503, "neither finished nor cleanly refused");
            return last;
        }
    }
}

#[tokio::test]
async fn sigterm_under_load_finishes_or_cleanly_refuses_every_write() {
    let mut gateway = Gateway::start().await;
    let mut tokens = Vec::new();
    for id in 0..CLIENTS {
        tokens.push(gateway.token(&format!("account:{id}"), 120_000).await);
    }
    let written = AtomicU64::new(0);
    let clients = tokens
        .iter()
        .enumerate()
        .map(|(id, token)| write_on(&gateway, id, token, &written));
    let terminate = async {
        while written.load(Ordering::Relaxed) < 20 * CLIENTS as u64 {
            tokio::task::yield_now().await;
        }
        kill_process(gateway.process.id(), Signal::TERM).unwrap();
    };
    let running = async { tokio::join!(join_all(clients), terminate) };
    let (acknowledged, ()) = timeout(PATIENCE, running).await.unwrap();
    let ended = timeout(PATIENCE, gateway.process.finish()).await.unwrap();
    assert_eq!(ended.code(), Some(0), "{ended:?}");

    let url = format!("sqlite:{}", gateway.database().display());
    let mut store = SqliteConnection::connect(&url).await.unwrap();
    for (id, acknowledged) in acknowledged.into_iter().enumerate() {
        let stored: i64 = sqlx::query_scalar("SELECT balance FROM demo_accounts WHERE id = $1")
            .bind(id.to_string())
            .fetch_one(&mut store)
            .await
            .unwrap();
        assert_eq!(
            stored, acknowledged,
            "account {id}: written without an answer, or lost"
        );
    }
}
