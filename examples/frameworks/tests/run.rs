//! Runs every program.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

#[path = "../../tests/bank/mod.rs"]
mod bank;

use e2e::process::Process;

use crate::bank::{balance, bank, said};

/// Catches: statements of another library that the fence does not protect.
#[tokio::test]
async fn other_libraries_write_behind_the_fence() {
    for program in ["sea_orm_entities", "diesel_async"] {
        let (database, pool) = bank().await;
        // Settings of sqlx are after the question mark.
        let url = database.url().split('?').next().unwrap();
        let mut writer = Process::spawn(program, [url]);
        assert_eq!(said(&mut writer).await, "balance 150");
        let refused = said(&mut writer).await;
        assert!(refused.starts_with("refused: "), "{refused}");
        assert!(refused.contains("stale fencing token"), "{refused}");
        assert_eq!(balance(&pool).await, 150);
    }
}

#[tokio::test]
async fn a_task_that_a_queue_gives_out_twice_is_done_once() {
    let (database, pool) = bank().await;
    let mut worker = Process::spawn("apalis_worker", [database.url()]);
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(said(&mut worker).await);
    }
    for (start, times) in [
        ("2026-11-26 ran under ", 1),
        ("2026-11-27 ran under ", 1),
        ("2026-11-27 was done under ", 1),
    ] {
        // The lines may come in any order.
        let found = lines.iter().filter(|line| line.starts_with(start));
        assert_eq!(found.count(), times, "{lines:?}");
    }
    assert_eq!(balance(&pool).await, 102);
}
