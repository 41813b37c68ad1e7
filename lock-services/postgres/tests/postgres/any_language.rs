//! The functions as an interface, used by `psql` alone. The cases of all databases use Python with
//! its own driver.

use fenced_jobs::{JobSlots, Standing};
use fenced_store::PgFencedStore;
use tokio::process::Command;

use crate::{
    cases::OnPostgres,
    in_a_database::{Database as _, World, example},
};

#[tokio::test]
async fn psql_alone_makes_a_fenced_deposit() {
    let world = World::<OnPostgres>::new().await;
    let psql = Command::new("psql")
        .args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file"])
        .arg(example("fenced_deposit.sql"))
        .arg(world.database.plain())
        .output();
    let output = psql.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(world.balance().await, 110);
    let said = String::from_utf8(output.stdout).unwrap();
    for outcome in ["granted", "renewed", "released"] {
        assert!(said.contains(outcome), "{outcome}: {said}");
    }
}

/// A slot that is done is not run again, and a call without the fence is refused.
#[tokio::test]
async fn psql_alone_runs_a_job_once_per_slot() {
    let world = World::<OnPostgres>::new().await;
    let run = async |slot: &str| {
        let psql = Command::new("psql")
            .args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--set"])
            .arg(format!("slot={slot}"))
            .arg("--file")
            .arg(example("run_once.sql"))
            .arg(world.database.plain())
            .output();
        let output = psql.await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (slot, outcome, balance) in [
        ("2026-11-27T02:00:00Z", "ran", 110),
        ("2026-11-27T02:00:00Z", "done", 110),
        ("by hand", "ran", 120),
    ] {
        let slot = slot.replace(' ', "-");
        let said = run(&slot).await;
        assert!(said.lines().any(|line| line == outcome), "{slot}: {said}");
        assert_eq!(world.balance().await, balance);
    }
    let state = PgFencedStore::new(world.pool.clone())
        .job_slot("interest", "by-hand")
        .await;
    assert!(matches!(state.unwrap().standing, Standing::Done { .. }));

    for unfenced in [
        "select fenced.run_job('interest', 'x')",
        "select fenced.save_job('interest', 'x', 1, '1')",
        "select fenced.fail_job('interest', 'x', 'error', 0)",
        "select fenced.retry_job('interest', 'x')",
        "select fenced.forget_job('interest', 'by-hand')",
        "select fenced.forget_jobs_below('interest', '2027-01-01T00:00:00Z')",
    ] {
        let refused = sqlx::query(unfenced)
            .execute(&world.pool)
            .await
            .unwrap_err();
        let code = refused.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("FN010"), "{unfenced}: {refused}");
    }
}
