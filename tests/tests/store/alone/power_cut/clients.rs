//! Clients that claim and commit until their server is gone.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use e2e::servers::DatabaseServer;
use fenced_store::{Dialect, FenceError, FencedStore};
use futures_util::future::join_all;
use lock_core::ResourceName;
use sqlx::{Encode, Executor, IntoArguments, Type};

use super::Accounts;
use crate::rule::grant;

const CLIENTS: usize = 4;
/// How many commits a client makes with one grant.
const COMMITS: usize = 30;
/// How many commits all clients together make before the power is cut.
const COMMITS_PER_ROUND: usize = 200;

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Kill,
    StopImmediately,
}

/// Clients, each with a resource of its own, and their answers.
pub(super) struct Clients<DB: Dialect> {
    pub(super) store: FencedStore<DB>,
    pub(super) name: &'static str,
    /// Stores a number.
    pub(super) insert: &'static str,
    pub(super) accounts: Accounts,
    tokens: AtomicU64,
    numbers: AtomicI64,
}

impl<DB> Clients<DB>
where
    DB: Dialect,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'q> i64: Encode<'q, DB> + Type<DB>,
{
    pub(super) fn new(store: FencedStore<DB>, name: &'static str, insert: &'static str) -> Self {
        Self {
            store,
            name,
            insert,
            accounts: Accounts::default(),
            tokens: AtomicU64::new(1),
            numbers: AtomicI64::new(1),
        }
    }

    /// Lets the clients work until the power is cut, and switches the power on again.
    pub(super) async fn until_cut(&self, server: &DatabaseServer, cut: Cut) {
        let clients = join_all((0..CLIENTS).map(|client| self.work(client)));
        let power = async {
            self.accounts.until_more(COMMITS_PER_ROUND).await;
            match cut {
                Cut::Kill => server.kill().await,
                Cut::StopImmediately => server.stop_immediately().await,
            }
        };
        // A pool waits for its server to come back. The test does not wait for the pool.
        tokio::select! {
            _ = clients => {}
            () = power => {}
        }
        server.start_again().await;
    }

    /// Works until the power is cut.
    async fn work(&self, client: usize) {
        while self.lease(client).await.is_ok() {}
        std::future::pending().await
    }

    async fn lease(&self, client: usize) -> Result<(), FenceError> {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let resource = format!("{}:{client}", self.name);
        let grant = grant(&resource, token);
        self.store.claim(&grant).await?;
        self.accounts.claimed(&resource, token);
        for _ in 0..COMMITS {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let mut tx = self.store.begin(&grant).await?;
            let insert = sqlx::query(self.insert).bind(number);
            insert.execute(&mut *tx).await?;
            tx.commit().await?;
            self.accounts.committed(number);
        }
        Ok(())
    }

    /// How many marks show a smaller token than the greatest claimed one.
    pub(super) async fn fallen_marks(&self) -> usize {
        let mut fallen = 0;
        for (resource, claimed) in self.accounts.claims() {
            let resource = ResourceName::new(resource).unwrap();
            let mark = self.store.high_water(&resource).await.unwrap();
            let mark = mark.map_or(0, |mark| mark.token().get());
            fallen += usize::from(mark < claimed);
        }
        fallen
    }
}
