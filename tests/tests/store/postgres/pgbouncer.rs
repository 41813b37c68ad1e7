//! Behind a PgBouncer, set up as docs/operations.md says: the rule cases in both modes, and what
//! sharing connections could spoil.

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::{PgBouncer, PoolMode, until},
};
use fenced_store::{Executed, FenceError, FencedStore, PgFencedStore, PgIsolation, PgTxOptions};
use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, ConnectOptions, PgConnection, Postgres, Row,
    migrate::{MigrateError, Migrator},
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{sync::OnceCell, task::JoinSet};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, at_every_await, balance, fenced_add, fresh, grant, high_water},
};

mod session {
    use crate::rule::{self, rule_cases};

    rule_cases!(super::Pooled<false>);
}

mod transaction {
    use crate::rule::{self, rule_cases};

    rule_cases!(super::Pooled<true>);
}

/// A store whose way to the database leads through a PgBouncer, in session or transaction mode.
pub(crate) struct Pooled<const BY_TRANSACTION: bool> {
    direct: PostgresServer,
    store: PgFencedStore,
}

/// The one in front of the server of all tests.
async fn bouncer(direct: &PostgresServer, mode: PoolMode) -> &'static PgBouncer {
    static SESSION: OnceCell<PgBouncer> = OnceCell::const_new();
    static TRANSACTION: OnceCell<PgBouncer> = OnceCell::const_new();
    let shared = match mode {
        PoolMode::Session => &SESSION,
        _ => &TRANSACTION,
    };
    shared
        .get_or_init(|| PgBouncer::start(direct.database(), mode))
        .await
}

impl<const BY_TRANSACTION: bool> Pooled<BY_TRANSACTION> {
    /// With an isolation level a single write is wrapped into a transaction: between its steps
    /// PgBouncer would change the connection.
    fn options() -> PgTxOptions {
        let options = PgTxOptions::default();
        if BY_TRANSACTION {
            return options.isolation(PgIsolation::ReadCommitted);
        }
        options
    }
}

impl<const BY_TRANSACTION: bool> Harness for Pooled<BY_TRANSACTION> {
    type Db = Postgres;

    const BOOKS: &'static str = PostgresServer::BOOKS;

    async fn unmigrated() -> Self {
        let direct = PostgresServer::unmigrated().await;
        let mode = if BY_TRANSACTION {
            PoolMode::Transaction
        } else {
            PoolMode::Session
        };
        let url = bouncer(&direct, mode).await.url(direct.database());
        let pool = PgPoolOptions::new().max_connections(8);
        let pool = pool.connect(&url).await.unwrap();
        let store = FencedStore::new(pool).with_options(Self::options());
        Self { direct, store }
    }

    async fn store_of_one(&self) -> PgFencedStore {
        let options = self.store.pool().connect_options();
        let pool = PgPoolOptions::new().max_connections(1);
        let pool = pool.connect_with(PgConnectOptions::clone(&options)).await;
        FencedStore::new(pool.unwrap()).with_options(Self::options())
    }

    fn store(&self) -> &PgFencedStore {
        &self.store
    }

    async fn impatient(&self) -> PgFencedStore {
        let options = Self::options()
            .lock_timeout(Some(Duration::from_millis(100)))
            .terminate_older(false);
        self.store.clone().with_options(options)
    }

    /// Not for migrations in transaction mode: sqlx prepares their statements for good.
    fn to_migrate(&self) -> &PgFencedStore {
        if BY_TRANSACTION {
            self.direct.store()
        } else {
            &self.store
        }
    }

    async fn execute(connection: &mut PgConnection, statement: &str) -> Result<u64, sqlx::Error> {
        PostgresServer::execute(connection, statement).await
    }

    async fn add(connection: &mut PgConnection, amount: i64) -> Result<(), sqlx::Error> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = 42");
        let add = add.persistent(!BY_TRANSACTION).bind(amount);
        add.execute(connection).await.map(drop)
    }

    /// In one message, as `balance`.
    async fn add_by_itself(connection: &mut PgConnection, amount: i64) -> Result<(), sqlx::Error> {
        let add = format!("UPDATE accounts SET balance = balance + {amount} WHERE id = 42");
        let add = sqlx::raw_sql(AssertSqlSafe(add));
        add.execute(connection).await.map(drop)
    }

    async fn add_at_once(
        store: &PgFencedStore,
        grant: &Sequencer,
        account: i64,
        amount: i64,
    ) -> Result<Executed, FenceError> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + $2 WHERE id = $1");
        let add = add.persistent(!BY_TRANSACTION).bind(account).bind(amount);
        store.begin(grant).execute(add).await
    }

    /// In one message: outside a transaction the next one may go over another connection.
    async fn balance(connection: &mut PgConnection) -> i64 {
        let read = sqlx::raw_sql("SELECT balance FROM accounts WHERE id = 42");
        read.fetch_one(connection).await.unwrap().get(0)
    }

    /// An application's own affair: sqlx takes a lock of the session's for it.
    async fn run_migrator(&self, migrator: Migrator) -> Result<(), MigrateError> {
        self.direct.run_migrator(migrator).await
    }

    async fn dump(&self) -> String {
        self.direct.dump().await
    }

    async fn administration(&self) -> Vec<String> {
        self.direct.administration().await
    }

    async fn triggers(&self) -> Vec<String> {
        self.direct.triggers().await
    }

    async fn delete_mark(&self, resource: &ResourceName) {
        self.direct.delete_mark(resource).await;
    }
}

/// Far more clients than connections: no write gets lost or into another's transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_share_connections_lose_no_write() {
    const CLIENTS: i64 = 40;
    const WRITES: i64 = 5;
    let world: Pooled<true> = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let options: PgConnectOptions = world.store().pool().connect_options().as_ref().clone();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (options, grant) = (options.clone(), grant.clone());
        clients.spawn(async move {
            let pool = PgPoolOptions::new().max_connections(1);
            let store: PgFencedStore = FencedStore::new(pool.connect_with(options).await.unwrap());
            for _ in 0..WRITES {
                let mut tx = store.begin(&grant).await.unwrap();
                Pooled::<true>::add(&mut tx, 1).await.unwrap();
                tx.commit().await.unwrap();
            }
        });
    }
    clients.join_all().await;
    assert_eq!(balance(&world).await, 100 + CLIENTS * WRITES);
}

/// What it leaves behind is left on the server's connection, which others use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_begin_leaves_nothing_on_a_shared_connection() {
    let world: Pooled<true> = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    at_every_await(async |at| {
        let begun = at.poll(world.store().begin(&grant)).await;
        begun.is_some_and(|begun| begun.is_ok())
    })
    .await;
    world.direct.until_unlocked().await;
    for expected in 101..=110 {
        fenced_add(&world, &grant).await.unwrap();
        assert_eq!(balance(&world).await, expected);
    }
}

async fn an_older_holder_is_ended<const BY_TRANSACTION: bool>() {
    let world: Pooled<BY_TRANSACTION> = fresh().await;
    let options =
        Pooled::<BY_TRANSACTION>::options().lock_timeout(Some(Duration::from_millis(100)));
    let store = world.store().clone().with_options(options);
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut open = store.begin(&old).await.unwrap();
    Pooled::<true>::add(&mut open, 1).await.unwrap();
    store.claim(&new).await.unwrap();
    let error: FenceError = Pooled::<true>::add(&mut open, 1).await.unwrap_err().into();
    assert!(matches!(error, FenceError::Terminated { .. }), "{error:?}");
    open.commit().await.unwrap_err();
    assert_eq!(balance(&world).await, 100);
    // What PgBouncer has closed is replaced.
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(34));
}

#[tokio::test]
async fn an_older_holder_is_ended_in_session_mode() {
    an_older_holder_is_ended::<false>().await;
}

#[tokio::test]
async fn an_older_holder_is_ended_in_transaction_mode() {
    an_older_holder_is_ended::<true>().await;
}

/// Postgres has committed when PgBouncer loses the connection. What it then reports looks like an
/// error of the server's, and is none.
#[tokio::test]
async fn a_single_write_whose_result_pgbouncer_never_got_is_unknown() {
    let direct: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    direct.store().claim(&grant).await.unwrap();
    let server = direct.options();
    let proxy = Proxy::start(&format!(
        "tcp://{}:{}",
        server.get_host(),
        server.get_port()
    ))
    .await;
    let way = proxy.url("tcp");
    let (_, port) = way.rsplit_once(':').unwrap();
    let way = server.port(port.parse().unwrap()).to_url_lossy();
    let bouncer = PgBouncer::behind(way.as_str(), PoolMode::Session).await;
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect(&bouncer.url(direct.database())).await.unwrap();
    let store = FencedStore::new(pool);
    // Prepares it, so that the next one is one message.
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    let lost = proxy.at_request("account:42", Fault::DropReplies);
    let write = PostgresServer::add_at_once(&store, &grant, 42, 1);
    let cut = async {
        until("it is committed", async || balance(&direct).await == 102).await;
        proxy.inflict(Fault::Cut);
    };
    let (written, ()) = tokio::join!(write, cut);
    assert!(lost.has_sprung());
    match written.unwrap_err() {
        FenceError::CommitUnknown { source } => {
            let reported = source.as_database_error();
            assert!(reported.is_some(), "PgBouncer reports it: {source:?}");
        }
        other => panic!("it is stored: {other:?}"),
    }
}

/// The control: a statement that is prepared for good stays behind on a connection that others use.
#[tokio::test]
async fn naive_clients_stumble_over_prepared_statements_in_transaction_mode() {
    let world: Pooled<true> = fresh().await;
    let options = world.store().pool().connect_options();
    let mut errors = 0;
    for _ in 0..5 {
        let pool = PgPoolOptions::new().max_connections(1);
        let pool = pool.connect_with(options.as_ref().clone()).await.unwrap();
        let naive = sqlx::query("SELECT $1::bigint").bind(1_i64).execute(&pool);
        errors += i32::from(naive.await.is_err());
    }
    assert!(errors > 0, "persistent(false) is not needed any more");
}
