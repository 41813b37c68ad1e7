//! The cost of the fence on MariaDB.

use fenced_store::FencedStore;
use sqlx::{Executor, mysql::MySqlPoolOptions};

use super::{
    load::Load,
    server::Server,
    transactions::{Statements, fenced_vs_plain},
};
use crate::figure::{BoxError, Measured, Setting};

/// 32 clients on loopback, each with a resource of its own.
pub(super) async fn tx_vs_plain(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::mariadb(setting.pinning).await?;
    let load = Load {
        clients: 32,
        transactions: 8,
        shared_resource: false,
    };
    let pool = MySqlPoolOptions::new()
        .min_connections(load.clients)
        .max_connections(load.clients);
    let pool = pool.connect(server.url()).await?;
    pool.execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)")
        .await?;
    for client in 0..load.clients {
        let account = sqlx::query("INSERT INTO accounts VALUES (?, 0)").bind(client);
        account.execute(&pool).await?;
    }
    let store = FencedStore::new(pool);
    store.migrate().await?;
    let statements = Statements {
        begin: "START TRANSACTION",
        update: "UPDATE accounts SET balance = balance + 1 WHERE id = ?",
    };
    fenced_vs_plain(store, statements, load, setting.rounds).await
}
