//! An account whose writes are under leases and fenced. Its twin is the control: the writes of the
//! twin are under leases of a plain table, and nothing checks them.

use std::{
    collections::BTreeSet,
    future::IntoFuture,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use e2e::{
    history::{Event, History},
    servers::until,
};
use fenced_store::{FenceError, FencedStore};
use lock_core::{
    Error, LeaseGuard, LockManager, Sequencer, Ttl,
    backend::{Runtime, TokioRuntime},
};
use sqlx::Pool;
use tokio::{task::JoinSet, time::timeout};

use crate::in_a_database::{Database, number};

const PATIENCE: Duration = Duration::from_secs(30);

/// The ttl is short, because the release of a lease may be lost in a crash.
const TTL: Ttl = Ttl::millis(300);

const TABLES: &str = "
    create table if not exists account (name varchar(64) primary key, balance bigint not null);
    create table if not exists entry
      (account varchar(64) not null, number bigint not null, token bigint not null,
       balance bigint not null);
    create table if not exists plain_lease
      (resource varchar(64) primary key, holder varchar(64) not null, end_us bigint not null);
    create table if not exists twin (name varchar(64) primary key, balance bigint not null)";

/// A server with a database.
pub(crate) trait Server: Database {
    /// The SQL for the server's clock, in microseconds since 1970.
    const NOW_US: &'static str;

    /// A pool whose commits are flushed, and that soon gives up when the server is away.
    fn durable(url: &str) -> impl Future<Output = Pool<Self::Db>> + Send;
}

/// One account, on which every client deposits 1, and its twin.
pub(crate) struct Bank<S: Server> {
    name: &'static str,
    store: FencedStore<S::Db>,
    pub(crate) history: History,
    /// The numbers of the deposits that were accepted, and of those that certainly were not
    /// accepted.
    accepted: Mutex<Vec<i64>>,
    refused: Mutex<Vec<i64>>,
    into_twin: AtomicI64,
}

/// A holder of both leases that has read both accounts and stands still.
pub(crate) struct Paused {
    pub(crate) guard: LeaseGuard,
    read: i64,
    twin: i64,
}

impl<S: Server> Bank<S> {
    pub(crate) async fn open(url: &str, name: &'static str) -> Self {
        let store = FencedStore::new(S::durable(url).await);
        store.migrate().await.unwrap();
        let accounts = format!(
            "{TABLES};
             insert into account values ('{name}', 0);
             insert into twin values ('{name}', 0);
             insert into plain_lease values ('{name}', '', 0)"
        );
        let mut session = store.pool().acquire().await.unwrap();
        S::execute(&mut session, &accounts).await.unwrap();
        drop(session);
        Self {
            name,
            store,
            history: History::default(),
            accepted: Mutex::default(),
            refused: Mutex::default(),
            into_twin: AtomicI64::new(0),
        }
    }

    pub(crate) fn pool(&self) -> &Pool<S::Db> {
        self.store.pool()
    }

    async fn execute(&self, statement: &str) -> u64 {
        let mut session = self.pool().acquire().await.unwrap();
        S::execute(&mut session, statement).await.unwrap()
    }

    pub(crate) async fn acquire(&self, locks: &LockManager, ttl: Ttl) -> Result<LeaseGuard, Error> {
        let asked = TokioRuntime.now();
        let guard = locks.acquire(self.name).ttl(ttl).wait(PATIENCE).await?;
        let granted = Event::answered(guard.sequencer(), asked);
        self.history.granted(granted);
        Ok(guard)
    }

    async fn claim(&self, grant: &Sequencer) -> Result<(), FenceError> {
        let asked = TokioRuntime.now();
        self.store.claim(grant).await?;
        self.history.claimed(Event::answered(grant, asked));
        Ok(())
    }

    async fn balance(&self) -> Result<i64, FenceError> {
        let read = format!("select balance from account where name = '{}'", self.name);
        let mut session = self.pool().acquire().await?;
        Ok(S::numbers(&mut session, &read).await?[0][0])
    }

    /// A whole section under a lease: claims, reads and writes.
    pub(crate) async fn deposit(&self, grant: &Sequencer) -> Result<(), FenceError> {
        self.claim(grant).await?;
        let read = self.balance().await?;
        self.write(grant, read).await
    }

    /// Writes a balance that is one more than the one that was read.
    async fn write(&self, grant: &Sequencer, read: i64) -> Result<(), FenceError> {
        let (asked, number) = (TokioRuntime.now(), rand::random::<i64>());
        let written = self.write_numbered(grant, read + 1, number).await;
        match &written {
            Ok(()) => {
                self.history.written(Event::answered(grant, asked));
                locked(&self.accepted).push(number);
            }
            Err(FenceError::CommitUnknown { .. }) => {}
            Err(_) => locked(&self.refused).push(number),
        }
        written
    }

    async fn write_numbered(
        &self,
        grant: &Sequencer,
        balance: i64,
        number: i64,
    ) -> Result<(), FenceError> {
        let mut tx = self.store.begin(grant).await?;
        let (name, token) = (self.name, grant.token());
        let update = format!("update account set balance = {balance} where name = '{name}'");
        S::execute(&mut tx, &update).await?;
        let entry = format!("insert into entry values ('{name}', {number}, {token}, {balance})");
        S::execute(&mut tx, &entry).await?;
        tx.commit().await.map(drop)
    }

    /// Starts a task for each of these managers. It deposits until the test stops it, however often
    /// a deposit fails.
    pub(crate) fn work(
        self: &Arc<Self>,
        locks: Vec<LockManager>,
        over: &Arc<AtomicBool>,
    ) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        for locks in locks {
            let (bank, over) = (Arc::clone(self), Arc::clone(over));
            workers.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    if let Ok(guard) = bank.acquire(&locks, TTL).await {
                        drop(bank.deposit(guard.sequencer()).await);
                        drop(guard.release().await);
                    }
                }
            });
        }
        workers
    }

    /// The number of deposits that were accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        locked(&self.accepted).len()
    }

    /// Checks that only the accepted deposits are stored, that each writer had seen the balance
    /// that it has overwritten, and that no token is less than the token of the write before.
    /// Returns the number of writes.
    pub(crate) async fn assert_sound(&self) -> usize {
        let entries = format!(
            "select number, token, balance from entry where account = '{}'
             order by balance, token desc",
            self.name
        );
        let mut session = self.pool().acquire().await.unwrap();
        let entries = S::numbers(&mut session, &entries).await.unwrap();
        drop(session);
        let balances: Vec<_> = entries.iter().map(|entry| entry[2]).collect();
        let balance = self.balance().await.unwrap();
        assert_eq!(
            balances,
            (1..=balance).collect::<Vec<_>>(),
            "an update was lost"
        );
        assert!(
            entries.is_sorted_by_key(|entry| entry[1]),
            "stale: {entries:?}"
        );
        let stored: BTreeSet<_> = entries.iter().map(|entry| entry[0]).collect();
        let accepted = locked(&self.accepted);
        let lost = accepted.iter().filter(|number| !stored.contains(number));
        assert_eq!(lost.count(), 0, "accepted writes are gone");
        let refused = locked(&self.refused);
        let refused = refused.iter().filter(|number| stored.contains(number));
        assert_eq!(refused.count(), 0, "refused writes are stored");
        self.history.assert_sound();
        entries.len()
    }

    /// Takes both leases, which are not renewed, and reads both accounts.
    pub(crate) async fn pause(&self, locks: &LockManager, ttl: Ttl) -> Paused {
        let asked = TokioRuntime.now();
        let acquire = locks.acquire(self.name).ttl(ttl).renew(false);
        let guard = timeout(PATIENCE, acquire.into_future()).await;
        let guard = guard.expect("it is free").unwrap();
        let granted = Event::answered(guard.sequencer(), asked);
        self.history.granted(granted);
        self.claim(guard.sequencer()).await.unwrap();
        assert!(self.takes_plain_lease(ttl).await, "somebody has it");
        Paused {
            guard,
            read: self.balance().await.unwrap(),
            twin: self.twin().await,
        }
    }

    /// Another client takes both leases, deposits on both accounts, and gives the leases back.
    pub(crate) async fn overtake(&self, locks: &LockManager) {
        let guard = self.acquire(locks, TTL).await.unwrap();
        self.deposit(guard.sequencer()).await.unwrap();
        guard.release().await.unwrap();
        until("the plain lease is over", async || {
            self.takes_plain_lease(TTL).await
        })
        .await;
        let read = self.twin().await;
        self.write_twin(read + 1).await;
        let end = format!(
            "update plain_lease set end_us = 0 where resource = '{}'",
            self.name
        );
        self.execute(&end).await;
    }

    /// The number of deposits that are missing on the account that nothing protects.
    pub(crate) async fn lost_from_twin(&self) -> i64 {
        self.into_twin.load(Ordering::Relaxed) - self.twin().await
    }

    async fn takes_plain_lease(&self, ttl: Ttl) -> bool {
        let (name, now_us, ttl_us) = (self.name, S::NOW_US, ttl.get().as_micros());
        let holder = rand::random::<u64>();
        let take = format!(
            "update plain_lease set holder = '{holder:016x}', end_us = {now_us} + {ttl_us}
             where resource = '{name}' and end_us < {now_us}"
        );
        self.execute(&take).await == 1
    }

    async fn twin(&self) -> i64 {
        let read = format!("select balance from twin where name = '{}'", self.name);
        number::<S>(self.pool(), &read).await
    }

    async fn write_twin(&self, balance: i64) {
        let write = format!(
            "update twin set balance = {balance} where name = '{}'",
            self.name
        );
        self.execute(&write).await;
        self.into_twin.fetch_add(1, Ordering::Relaxed);
    }
}

impl Paused {
    /// Goes on as if nothing had happened: writes a balance that is one more than the one that was
    /// read.
    pub(crate) async fn goes_on<S: Server>(&self, bank: &Bank<S>) -> Result<(), FenceError> {
        bank.write_twin(self.twin + 1).await;
        bank.write(self.guard.sequencer(), self.read).await
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
