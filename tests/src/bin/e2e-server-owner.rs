//! A stand-in for a test process: starts one server of each kind, reports them, and waits to be
//! killed.
//!
//! With the argument `idle` it does nothing at all, and does not even look at its standard input.
#![forbid(unsafe_code)]

use std::{env, future, path::PathBuf};

use e2e::{
    process::Process,
    servers::{Redis, postgres_database},
};
use serde_json::json;
use sqlx::{Connection, PgConnection};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if env::args().nth(1).as_deref() == Some("idle") {
        println!("idle");
        return future::pending().await;
    }
    let redis = Redis::start().await;
    redis.pause().await;
    let running = idle_worker().await;
    let stopped = idle_worker().await;
    stopped.pause().await;

    let database = postgres_database().await;
    let mut connection = PgConnection::connect(database.url()).await?;
    let (backend, data): (i32, String) =
        sqlx::query_as("SELECT pg_backend_pid(), current_setting('data_directory')")
            .fetch_one(&mut connection)
            .await?;

    let redis = redis.running();
    let owned = json!({
        "pids": [redis.pid, running.id().as_raw_pid(), stopped.id().as_raw_pid(), backend],
        "dirs": [redis.dir, PathBuf::from(data)],
    });
    println!("{owned}");
    future::pending().await
}

async fn idle_worker() -> Process {
    let mut worker = Process::spawn("e2e-server-owner", ["idle"]);
    assert_eq!(worker.line().await.as_deref(), Some("idle"));
    worker
}
