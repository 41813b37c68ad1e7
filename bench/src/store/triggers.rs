//! The cost that the triggers of a protected table add to a statement.

use fenced_store::Protection;
use sqlx::{Executor, PgConnection};

use super::{
    postgres::{self, ONE_CLIENT},
    server::Server,
    transactions::POSTGRES,
};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

/// The number in one turn, in one transaction.
const UPDATES: u32 = 50;

/// Updates of one row inside a fenced transaction: in a table where each row is a resource of its
/// own, and in the same table without triggers.
pub(super) async fn row_vs_bare(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::postgres(setting.pinning).await?;
    let store = postgres::store(server.url().parse()?, ONE_CLIENT).await?;
    let copy = "CREATE TABLE bare (LIKE accounts INCLUDING ALL); \
        INSERT INTO bare SELECT * FROM accounts";
    store.pool().execute(copy).await?;
    let rows = Protection::rows("accounts", "id", "account:")?;
    store.protect(&rows).await?;
    let grants = ONE_CLIENT.claim(&store).await?;
    let [grant] = grants.as_slice() else {
        return Err("one client has one resource".into());
    };
    let turn = async |samples: &mut Samples, update| {
        let mut tx = store.begin(grant).await?;
        for _ in 0..UPDATES {
            samples.time(write(&mut tx, update)).await?;
        }
        tx.commit().await?;
        Ok(())
    };
    let medians = take_turns(
        setting.rounds,
        async |samples| turn(samples, POSTGRES.update).await,
        async |samples| turn(samples, BARE).await,
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

const BARE: &str = "UPDATE bare SET balance = balance + 1 WHERE id = $1";

/// Writes the row of the resource.
async fn write(connection: &mut PgConnection, update: &'static str) -> sqlx::Result<()> {
    let update = sqlx::query(update).bind(0_i64);
    update.execute(connection).await.map(drop)
}
