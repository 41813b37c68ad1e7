//! Common locks on a database that an application already has.

use sqlx::{Connection, Executor, PgConnection};

use super::world::World;
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
};

const CYCLES: u32 = 25;

/// The peers. None of them fences, and only the first one has a lease.
#[derive(Clone, Copy)]
pub(super) enum Peer {
    LeaseTable,
    AdvisoryLock,
    ForUpdate,
}

pub(super) async fn vs(peer: Peer, rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(1).await?;
    let mut session = PgConnection::connect(world.server.url()).await?;
    let medians = compare(
        rounds,
        CYCLES,
        async || world.cycle("account:1").await,
        async || peer.cycle(&mut session).await,
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

impl Peer {
    async fn cycle(self, session: &mut PgConnection) -> Result<(), sqlx::Error> {
        let statements: &[&'static str] = match self {
            Self::LeaseTable => &[
                "UPDATE lease SET holder = 'me', until = now() + interval '10 s' \
                 WHERE resource = '1' AND until <= now()",
                "UPDATE lease SET until = now() WHERE resource = '1' AND holder = 'me'",
            ],
            Self::AdvisoryLock => &["SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"],
            Self::ForUpdate => &[
                "BEGIN; SELECT FROM lease WHERE resource = '1' FOR UPDATE",
                "COMMIT",
            ],
        };
        for statement in statements {
            session.execute(sqlx::raw_sql(*statement)).await?;
        }
        Ok(())
    }
}
