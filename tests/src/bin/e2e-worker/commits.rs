use std::error::Error;

use clap::Args;
use fenced_store::{FencedStore, SqliteFencedStore};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use serde_json::json;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

use crate::say;

/// One fenced transaction after the other.
#[derive(Args)]
pub(crate) struct Commits {
    /// URL of an SQLite database, which has `journal(number)`.
    #[arg(long)]
    store: String,
    /// The token that the lock service would have granted.
    #[arg(long)]
    token: u64,
}

/// Claims, and commits until it is killed. Reports what the database answers.
pub(crate) async fn run(commits: &Commits) -> Result<(), Box<dyn Error>> {
    let options: SqliteConnectOptions = commits.store.parse()?;
    let options = SqliteFencedStore::recommended(options);
    let store = FencedStore::new(SqlitePool::connect_with(options).await?);
    let grant = Sequencer::new(
        Issuer::new("redis")?,
        ResourceName::new("journal")?,
        FencingToken::new(commits.token)?,
        Holder::random(),
    );
    store.claim(&grant).await?;
    say(&json!({ "claimed": commits.token }))?;
    loop {
        let number: i64 = rand::random();
        let mut tx = store.begin(&grant).await?;
        let insert = sqlx::query("INSERT INTO journal VALUES ($1)").bind(number);
        insert.execute(&mut *tx).await?;
        tx.commit().await?;
        say(&json!({ "committed": number }))?;
    }
}
