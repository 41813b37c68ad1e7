//! Ends the workers' sessions, and crashes the server.

use std::{sync::atomic::Ordering, time::Duration};

use e2e::servers::DatabaseServer;
use sqlx::{Connection, Executor, PgConnection};

use super::Run;

/// The name of the workers' sessions.
pub(super) const PREY: &str = "worker";

const BETWEEN_TERMINATIONS: Duration = Duration::from_millis(40);

/// Ends one session at a time, so that the others are in the middle of their work.
const TERMINATE_ONE: &str = "SELECT pg_terminate_backend(pid) FROM
    (SELECT pid FROM pg_stat_activity WHERE application_name = 'worker'
     ORDER BY random() LIMIT 1) AS prey";

/// Ends sessions for half of the time, crashes the server, and goes on for the other half.
pub(super) async fn torment(run: &Run, server: &DatabaseServer, length: Duration) {
    terminate(server, length / 2).await;
    server.stop_immediately().await;
    server.start_again().await;
    terminate(server, length / 2).await;
    run.over.store(true, Ordering::Relaxed);
}

async fn terminate(server: &DatabaseServer, length: Duration) {
    let mut session = PgConnection::connect(server.url()).await.unwrap();
    let forever = async {
        loop {
            session.execute(TERMINATE_ONE).await.unwrap();
            tokio::time::sleep(BETWEEN_TERMINATIONS).await;
        }
    };
    tokio::time::timeout(length, forever).await.unwrap_err();
}
