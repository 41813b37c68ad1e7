//! Entities of SeaORM behind a fence: `sea_orm_entities postgres://localhost/bank`
//! SeaORM opens transactions itself, so each transaction first calls an SQL function, the fence.
use std::error::Error;

use palisade::Sequencer;
use sea_orm::{ActiveValue::Set, Database, Statement, TransactionTrait, entity::prelude::*};

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

const BEGIN: &str = "SELECT fenced.begin_fenced($1, $2, $3, $4)";

async fn deposit(db: &DatabaseConnection, lease: &Sequencer, amount: i64) -> Result<i64, DbErr> {
    let tx = db.begin().await?;
    let (resource, issuer) = (lease.resource().as_str(), lease.issuer().as_str());
    let (token, holder) = (i64::from(lease.token()), lease.holder().digest());
    let fence = [resource.into(), token.into(), holder.into(), issuer.into()];
    let begin = Statement::from_sql_and_values(db.get_database_backend(), BEGIN, fence);
    tx.execute_raw(begin).await?; // from here on no newer holder can claim the resource
    let found = account::Entity::find_by_id(42).one(&tx).await?;
    let account = found.ok_or_else(|| DbErr::RecordNotFound("account 42".to_owned()))?;
    let balance = Set(account.balance + amount);
    let mut account: account::ActiveModel = account.into();
    account.balance = balance;
    let account = account.update(&tx).await?;
    tx.commit().await?;
    Ok(account.balance)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: .. DATABASE_URL")?;
    let db = Database::connect(url).await?;
    // SeaORM 2 uses the same version of sqlx, so both use one pool.
    let accounts = palisade::open(db.get_postgres_connection_pool().clone()).await?;

    let slow = accounts.acquire("account:42").await?;
    let late = slow.sequencer().clone();
    slow.release().await?; // as if it were paused past its lease
    let next = accounts.acquire("account:42").await?;
    let balance = deposit(&db, next.sequencer(), 50).await?;
    println!("balance {balance}");
    let refused = deposit(&db, &late, 10).await.err();
    println!("refused: {}", refused.ok_or("a stale write was let in")?);
    Ok(())
}
