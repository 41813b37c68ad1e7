use sqlx::{Executor, PgPool};

use super::{DatabaseServer, until};

impl DatabaseServer {
    /// A standby that has all data up to now, and gets no later data.
    ///
    /// # Panics
    /// If there is another standby, or it cannot be started.
    pub async fn lagging_standby(&self) -> Self {
        const CAUGHT_UP: &str =
            "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
        let standby = self.standby().await;
        let (ahead, behind) = (pool(self).await, pool(&standby).await);
        let standbys = async |which: &'static str| -> i64 {
            let number = sqlx::query_scalar(which).fetch_one(&ahead).await;
            number.unwrap_or_else(|error| panic!("the standbys: {error}"))
        };
        until("it has caught up", async || standbys(CAUGHT_UP).await == 1).await;
        for cut_off in [
            "ALTER SYSTEM SET primary_conninfo = ''",
            "SELECT pg_reload_conf()",
        ] {
            let done = behind.execute(cut_off).await;
            done.unwrap_or_else(|error| panic!("cannot cut it off: {error}"));
        }
        let any = "SELECT count(*) FROM pg_stat_replication";
        until("it is cut off", async || standbys(any).await == 0).await;
        standby
    }

    /// From here on the server has a synchronous standby. Commits do not wait for it unless they
    /// ask for that.
    ///
    /// # Panics
    /// If no standby is connected within 60 s.
    pub async fn wait_for_standby(&self) {
        const WAITS: &str = "SELECT current_setting('synchronous_standby_names') = '*' AND EXISTS
            (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        let server = pool(self).await;
        for setting in [
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "ALTER SYSTEM SET synchronous_commit = 'local'",
            "SELECT pg_reload_conf()",
        ] {
            let done = server.execute(setting).await;
            done.unwrap_or_else(|error| panic!("{setting}: {error}"));
        }
        let waits = async || {
            let waits: Result<bool, _> = sqlx::query_scalar(WAITS).fetch_one(&server).await;
            matches!(waits, Ok(true))
        };
        until("commits wait for a standby", waits).await;
    }

    /// Makes a primary of this standby.
    ///
    /// # Panics
    /// If that fails.
    pub async fn promote(&self) {
        let promoted = sqlx::query_scalar("SELECT pg_promote()");
        let promoted: Result<bool, _> = promoted.fetch_one(&pool(self).await).await;
        assert!(matches!(promoted, Ok(true)), "{promoted:?}");
    }
}

async fn pool(server: &DatabaseServer) -> PgPool {
    let connected = PgPool::connect(server.url()).await;
    connected.unwrap_or_else(|error| panic!("{}: {error}", server.url()))
}
