//! One MariaDB as lock service and store, beside a plain lease table in the same database.

use e2e::{servers::DatabaseServer, warden::ServerKind};
use fenced_store::{MySqlFencedLocks, MySqlFencedStore};
use lock_core::Ttl;
use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlPoolOptions};

use super::handoff::across;
use crate::{
    consensus::hand_on,
    figure::{BoxError, Measured, Unit},
    paired::{compare, take_turns},
    pinning::start_server,
};

const CYCLES: u32 = 25;
const TTL: Ttl = Ttl::secs(60);

const TAKE: &str = "UPDATE lease SET holder = 'me', until = NOW(6) + INTERVAL 10 SECOND
                    WHERE resource = '1' AND until <= NOW(6)";
const GIVE: &str = "UPDATE lease SET until = NOW(6) WHERE resource = '1' AND holder = 'me'";

/// A server that flushes its commits.
struct World {
    server: DatabaseServer,
    accounts: MySqlFencedLocks,
}

impl World {
    async fn new() -> Result<Self, BoxError> {
        const FLUSHED: &[&str] = &["--innodb-flush-log-at-trx-commit=1"];
        let start = || DatabaseServer::mysql_with(ServerKind::MariaDb, FLUSHED);
        let server = start_server(start)?;
        let pool = MySqlPoolOptions::new().max_connections(1);
        let pool = pool.connect(server.url()).await?;
        for statement in [
            "CREATE TABLE lease (resource varchar(64) PRIMARY KEY, holder text, until datetime(6))",
            "INSERT INTO lease VALUES ('1', '', '2000-01-01')",
        ] {
            pool.execute(statement).await?;
        }
        let accounts = palisade::open(MySqlFencedStore::new(pool)).await?;
        // The very first claim also sets the issuer, so it is not measured.
        accounts.acquire("first").await?.release().await?;
        Ok(Self { server, accounts })
    }
}

pub(super) async fn cycle_vs_lease_table(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new().await?;
    let mut session = MySqlConnection::connect(world.server.url()).await?;
    let medians = compare(
        rounds,
        CYCLES,
        async || {
            let guard = world.accounts.acquire("account:1").await?;
            guard.release().await?;
            Ok::<_, BoxError>(())
        },
        async || {
            for statement in [TAKE, GIVE] {
                session.execute(statement).await?;
            }
            Ok::<_, BoxError>(())
        },
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

/// The time of a hand-off from one process to another, which polls, and among the waiters of one
/// process.
pub(super) async fn handoff_across_vs_within(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new().await?;
    let clients = [
        palisade::connect(world.server.url()).await?,
        palisade::connect(world.server.url()).await?,
    ];
    let medians = take_turns(
        std::cmp::max(rounds / 4, 1),
        async |samples| across(&clients, TTL, samples).await,
        async |samples| hand_on(world.accounts.locks(), TTL, samples).await,
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
