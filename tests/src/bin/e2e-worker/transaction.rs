use std::{error::Error, time::Duration};

use clap::{Args, ValueEnum};
use fenced_store::{FenceError, FencedTx, PgFencedStore, PgTxOptions};
use futures_util::TryStreamExt;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use serde_json::json;
use sqlx::{Executor, PgPool, Postgres};

use crate::{Talk, say};

/// A fenced transaction in Postgres that has written something, and stays open without bound.
#[derive(Args)]
pub(crate) struct Transaction {
    /// URL of the database, which has `accounts(id, balance)` with a row of id 42.
    #[arg(long)]
    store: String,
    /// The resource to claim.
    #[arg(long)]
    resource: String,
    /// The token to claim it with.
    #[arg(long)]
    token: u64,
    /// The activity inside the transaction.
    #[arg(long)]
    state: State,
}

#[derive(Clone, Copy, ValueEnum)]
enum State {
    /// Nothing.
    Idle,
    /// A statement that takes ten minutes.
    Slow,
    /// A short statement now and then.
    Chatty,
    /// Receiving a result of 8 GB.
    Receiving,
}

const WRITE: &str = "UPDATE accounts SET balance = balance + 1 WHERE id = 42";
const SLOW: &str = "SELECT pg_sleep(600)";
const CHATTY: &str = "SELECT 'still here'";
const LARGE: &str = "SELECT repeat('x', 8192), generate_series(1, 1000000)";

/// Claims, begins, writes, and reports its session; commits at a line of input, if it gets that
/// far.
pub(crate) async fn run(transaction: &Transaction, mut talk: Talk) -> Result<(), Box<dyn Error>> {
    let grant = Sequencer::new(
        Issuer::new("redis")?,
        ResourceName::new(transaction.resource.as_str())?,
        FencingToken::new(transaction.token)?,
        Holder::random(),
    );
    let options = PgTxOptions::default()
        .idle_timeout(None)
        .statement_timeout(None);
    let store = PgFencedStore::new(PgPool::connect(&transaction.store).await?);
    let store = store.with_options(options);
    store.claim(&grant).await?;
    let mut tx = store.begin(&grant).await?;
    tx.execute(WRITE).await?;
    let session: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut *tx)
        .await?;
    say(&json!({ "session": session }))?;

    let committed = match stay(&mut tx, transaction.state, &mut talk).await {
        Ok(()) => tx.commit().await.map(drop),
        Err(error) => Err(error),
    };
    say(&match committed {
        Ok(()) => json!("committed"),
        Err(error) => json!({ "failed": error.to_string() }),
    })?;
    Ok(())
}

/// Ends at a line of input, or when the statement ends.
async fn stay(
    tx: &mut FencedTx<Postgres>,
    state: State,
    talk: &mut Talk,
) -> Result<(), FenceError> {
    match state {
        State::Idle => drop(talk.told_to_go_on().await),
        State::Slow => {
            tx.execute(SLOW).await?;
        }
        State::Receiving => {
            let mut rows = tx.fetch(LARGE);
            while rows.try_next().await?.is_some() {}
        }
        State::Chatty => loop {
            tx.execute(CHATTY).await?;
            tokio::select! {
                biased;
                _ = talk.told_to_go_on() => break,
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        },
    }
    Ok(())
}
