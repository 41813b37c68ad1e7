//! Diesel behind a fence: `diesel_async postgres://localhost/bank`
//!
//! Diesel opens transactions itself, so the fence is a function of SQL that each calls first.
#![allow(
    missing_docs,
    clippy::exhaustive_structs,
    reason = "of what `table!` makes"
)]
use std::{error::Error, time::Duration};

use diesel::{
    ExpressionMethods, QueryDsl, QueryResult, sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use palisade::{Sequencer, Ttl, store::PgFencedStore};

diesel::table! {
    accounts (id) {
        id -> BigInt,
        balance -> BigInt,
    }
}

/// The mark has a digest of the holder, which is a secret.
const BEGIN: &str = "SELECT fenced.begin_fenced($1, $2, \
                     left(encode(sha256(decode($3, 'hex')), 'hex'), 32), $4)";

async fn deposit(
    connection: &mut AsyncPgConnection,
    lease: &Sequencer,
    amount: i64,
) -> QueryResult<i64> {
    connection
        .transaction(async |tx| {
            // From here to the end of the transaction no newer holder can claim the resource.
            sql_query(BEGIN)
                .bind::<Text, _>(lease.resource().as_str())
                .bind::<BigInt, _>(i64::from(lease.token()))
                .bind::<Text, _>(lease.holder().expose())
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
    let store = PgFencedStore::new(sqlx::PgPool::connect(&url).await?);
    store.migrate().await?;
    let bank = palisade::open(store).await?;
    let mut connection = AsyncPgConnection::establish(&url).await?;

    let slow = bank.acquire("account:42");
    let slow = slow.ttl(Ttl::secs(1)).renew(false).await?;
    tokio::time::sleep(Duration::from_secs(2)).await; // paused past its lease
    let next = bank
        .acquire("account:42")
        .wait(Duration::from_secs(5))
        .await?;

    let balance = deposit(&mut connection, next.sequencer(), 50).await?;
    println!("balance {balance}");
    match deposit(&mut connection, slow.sequencer(), 10).await {
        Ok(balance) => return Err(format!("a stale write was let in: {balance}").into()),
        Err(refused) => println!("refused: {refused}"),
    }
    next.release().await?;
    Ok(())
}
