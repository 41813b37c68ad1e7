//! Behind a PgBouncer, set up as docs/operations/postgres.md says: the rule cases in both modes,
//! and the faults that shared connections could cause.

use std::time::Duration;

use e2e::{
    proxy::Fault,
    servers::{PgBouncer, PoolMode, until},
};
use fenced_store::{
    Executed, FenceError, FencedStore, PgFencedStore, PgIsolation, PgTxOptions, Rights,
};
use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, ConnectOptions, PgConnection, Postgres, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{sync::OnceCell, task::JoinSet};

use crate::{
    postgres::server::PostgresServer,
    rule::{
        Harness, SqlHarness, at_every_await, balance, claimed, fenced_add, fresh, grant, migrated,
    },
    servers::Server,
};

/// A client has a connection for itself, as without PgBouncer. Only a connection on which state was
/// left behind could be treated differently.
mod session {
    use crate::{
        rule::{self, rule_cases},
        servers::server_cases,
    };

    rule_cases!(super::Pooled<false>:
        stale_holder_cannot_begin,
        claim_on_a_stray_shuts_the_older_holder_out,
        a_transaction_that_was_ended_inside_has_no_receipt,
        a_fence_ends_with_its_transaction,
        begin_can_be_dropped_at_every_await,
        commit_can_be_dropped_at_every_await,
        rollback_can_be_dropped_at_every_await,
        claim_can_be_dropped_at_every_await,
        a_single_write_can_be_dropped_at_every_await,
        a_statement_can_be_dropped_at_every_await,
        a_savepoint_can_be_dropped_at_every_await,
        migrate_can_be_dropped_at_every_await,
    );
    server_cases!(super::Pooled<false>);
}

mod transaction {
    use crate::{
        job_rule::{self, job_cases},
        rule::{self, rule_cases, store_cases},
        servers::server_cases,
    };

    rule_cases!(super::Pooled<true>);
    job_cases!(super::Pooled<true>);
    server_cases!(super::Pooled<true>);
}

/// A store that reaches the database through a PgBouncer, in session or transaction mode.
pub(crate) struct Pooled<const BY_TRANSACTION: bool> {
    direct: PostgresServer,
    store: PgFencedStore,
}

/// The PgBouncer in front of the server of all tests.
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
    /// With an isolation level a single write is wrapped into a transaction. Between its steps
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

    async fn fresh() -> Self {
        migrated().await
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

    async fn add(connection: &mut PgConnection, amount: i64) -> Result<(), FenceError> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = 42");
        let add = add.persistent(!BY_TRANSACTION).bind(amount);
        add.execute(connection).await?;
        Ok(())
    }

    async fn add_unfenced(store: &PgFencedStore, amount: i64) -> Result<(), FenceError> {
        Self::add_by_itself(&mut *store.pool().acquire().await?, amount).await
    }

    /// This is one message, because outside a transaction the next message may go over another
    /// connection.
    async fn balance(connection: &mut PgConnection) -> i64 {
        let read = sqlx::raw_sql("SELECT balance FROM accounts WHERE id = 42");
        read.fetch_one(connection).await.unwrap().get(0)
    }
}

impl<const BY_TRANSACTION: bool> SqlHarness for Pooled<BY_TRANSACTION> {
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

    /// Migrations do not go through transaction mode, because sqlx prepares their statements
    /// permanently.
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

    /// This is one message, as in `balance`.
    async fn add_by_itself(connection: &mut PgConnection, amount: i64) -> Result<(), FenceError> {
        let add = format!("UPDATE accounts SET balance = balance + {amount} WHERE id = 42");
        let add = sqlx::raw_sql(AssertSqlSafe(add));
        add.execute(connection).await?;
        Ok(())
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

impl<const BY_TRANSACTION: bool> Server for Pooled<BY_TRANSACTION> {
    const SEAL: &'static str = PostgresServer::SEAL;

    fn ending(&self) -> PgFencedStore {
        let options = Self::options().lock_timeout(Some(Duration::from_millis(100)));
        self.store.clone().with_options(options)
    }

    async fn end_session(&self, connection: &mut PgConnection) {
        self.direct.end_session(connection).await;
    }
}

/// There are far more clients than connections. No write is lost, or gets into another client's
/// transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_share_connections_lose_no_write() {
    const CLIENTS: i64 = 40;
    const WRITES: i64 = 5;
    let (world, grant) = claimed::<Pooled<true>>().await;
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

/// A dropped begin would leave its state on the server's connection, which other clients use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_begin_leaves_nothing_on_a_shared_connection() {
    let (world, grant) = claimed::<Pooled<true>>().await;
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

/// Postgres has committed when PgBouncer loses the connection. The report of PgBouncer then looks
/// like an error of the server, but it is none.
#[tokio::test]
async fn a_single_write_whose_result_pgbouncer_never_got_is_unknown() {
    let direct: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    direct.store().claim(&grant).await.unwrap();
    let (proxy, way) = direct.proxy().await;
    let way = way.to_url_lossy();
    let bouncer = PgBouncer::behind(way.as_str(), PoolMode::Session).await;
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect(&bouncer.url(direct.database())).await.unwrap();
    let store = FencedStore::new(pool);
    // Prepares the statement, so that the next write is one message.
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

/// How many plain queries fail on connections that other clients use, too. Each has a transaction,
/// because sqlx prepares in one message and runs in a second: without a transaction PgBouncer may
/// send the second to another session.
async fn failures(options: &PgConnectOptions, persistent: bool) -> usize {
    let mut failures = 0;
    for number in 0..20_i64 {
        let pool = PgPoolOptions::new().max_connections(1);
        let pool = pool.connect_with(options.clone()).await.unwrap();
        let query = sqlx::query_scalar("SELECT $1::bigint").bind(number);
        let mut tx = pool.begin().await.unwrap();
        let answer: Result<i64, _> = query.persistent(persistent).fetch_one(&mut *tx).await;
        failures += usize::from(answer.is_err_and(|error| {
            let code = error.as_database_error().and_then(|error| error.code());
            assert!(
                matches!(code.as_deref(), Some("42P05" | "26000")),
                "{error}"
            );
            true
        }));
    }
    failures
}

/// The control: a statement that is prepared permanently stays on a connection that other clients
/// use.
#[tokio::test]
async fn naive_clients_stumble_over_prepared_statements_in_transaction_mode() {
    let world: Pooled<true> = fresh().await;
    let options = world.store().pool().connect_options();
    assert_eq!(failures(&options, false).await, 0);
    let naive = failures(&options, true).await;
    assert!(naive > 0, "persistent(false) is not needed any more");
    let uncached = options.as_ref().clone().statement_cache_capacity(0);
    let uncached = failures(&uncached, true).await;
    assert!(uncached > 0, "statement_cache_capacity(0) is enough");
}

/// The page about Postgres promises this.
#[tokio::test]
async fn our_own_calls_need_no_setting_behind_pgbouncer_in_transaction_mode() {
    let direct: PostgresServer = fresh().await;
    let url = bouncer(&direct, PoolMode::Transaction)
        .await
        .url(direct.database());
    for number in 0..20 {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect(&url)
            .await
            .unwrap();
        let store = FencedStore::new(pool);
        let own = grant("account:42", 33 + number);
        store.claim(&own).await.unwrap();
        let tx = store.begin(&own).await.unwrap();
        tx.commit().await.unwrap();
        store.settle(&own).await.unwrap();
        let mark = store.high_water(own.resource()).await.unwrap().unwrap();
        assert_eq!(mark.token(), own.token());
        store.check(Rights::ClaimAndWrite).await.unwrap();
    }
}
