//! Entities of SeaORM behind a fence: `sea_orm_entities postgres://localhost/bank`
//!
//! SeaORM opens transactions itself, so the fence is a function of SQL that each calls first.
use std::{error::Error, time::Duration};

use palisade::{Sequencer, Ttl, store::PgFencedStore};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ConnectionTrait, Database, DatabaseConnection, DbBackend,
    DbErr, EntityTrait, Statement, TransactionTrait,
};

mod account {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
    #[sea_orm(table_name = "accounts")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub balance: i64,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The mark has a digest of the holder, which is a secret.
const BEGIN: &str = "SELECT fenced.begin_fenced($1, $2, \
                     left(encode(sha256(decode($3, 'hex')), 'hex'), 32), $4)";

async fn deposit(db: &DatabaseConnection, lease: &Sequencer, amount: i64) -> Result<i64, DbErr> {
    let tx = db.begin().await?;
    let fence = [
        lease.resource().as_str().into(),
        i64::from(lease.token()).into(),
        lease.holder().expose().into(),
        lease.issuer().as_str().into(),
    ];
    // From here to the end of the transaction no newer holder can claim the resource.
    let begin = Statement::from_sql_and_values(DbBackend::Postgres, BEGIN, fence);
    tx.execute_raw(begin).await?;
    let account = account::Entity::find_by_id(42).one(&tx).await?;
    let account = account.ok_or_else(|| DbErr::RecordNotFound("account 42".to_owned()))?;
    let balance = account.balance + amount;
    let mut account: account::ActiveModel = account.into();
    account.balance = Set(balance);
    account.update(&tx).await?;
    tx.commit().await?;
    Ok(balance)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: .. DATABASE_URL")?;
    let db = Database::connect(&url).await?;
    // SeaORM 2 has the same sqlx: both use one pool.
    let store = PgFencedStore::new(db.get_postgres_connection_pool().clone());
    store.migrate().await?;
    let accounts = palisade::open(store).await?;

    let slow = accounts.acquire("account:42");
    let slow = slow.ttl(Ttl::secs(1)).renew(false).await?;
    tokio::time::sleep(Duration::from_secs(2)).await; // paused past its lease
    let next = accounts
        .acquire("account:42")
        .wait(Duration::from_secs(5))
        .await?;

    println!("balance {}", deposit(&db, next.sequencer(), 50).await?);
    match deposit(&db, slow.sequencer(), 10).await {
        Ok(balance) => return Err(format!("a stale write was let in: {balance}").into()),
        Err(refused) => println!("refused: {refused}"),
    }
    next.release().await?;
    Ok(())
}
