//! Diesel behind a fence: `diesel_async postgres://localhost/bank`
//!
//! Diesel opens transactions itself, so each transaction first calls an SQL function, the fence.
#![allow(
    missing_docs,
    clippy::exhaustive_structs,
    reason = "in the code that `table!` makes"
)]
use std::error::Error;

use diesel::{
    ExpressionMethods, QueryDsl, QueryResult, sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use palisade::Sequencer;

diesel::table! {
    accounts (id) { id -> BigInt, balance -> BigInt, }
}

const BEGIN: &str = "SELECT fenced.begin_fenced($1, $2, $3, $4)";

async fn deposit(db: &mut AsyncPgConnection, lease: &Sequencer, amount: i64) -> QueryResult<i64> {
    db.transaction(async |tx| {
        // From here to the end of the transaction no newer holder can claim the resource.
        sql_query(BEGIN)
            .bind::<Text, _>(lease.resource().as_str())
            .bind::<BigInt, _>(i64::from(lease.token()))
            .bind::<Text, _>(lease.holder().digest())
            .bind::<Text, _>(lease.issuer().as_str())
            .execute(tx)
            .await?;
        diesel::update(accounts::table.find(42))
            .set(accounts::balance.eq(accounts::balance + amount))
            .returning(accounts::balance)
            .get_result(tx)
            .await
    })
    .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: .. DATABASE_URL")?;
    let bank = palisade::open(&*url).await?;
    let mut db = AsyncPgConnection::establish(&url).await?;

    let slow = bank.acquire("account:42").await?;
    let late = slow.sequencer().clone();
    slow.release().await?; // as if it were paused past its lease
    let next = bank.acquire("account:42").await?;
    let balance = deposit(&mut db, next.sequencer(), 50).await?;
    println!("balance {balance}");
    let refused = deposit(&mut db, &late, 10).await.err();
    println!("refused: {}", refused.ok_or("a stale write was let in")?);
    Ok(())
}
