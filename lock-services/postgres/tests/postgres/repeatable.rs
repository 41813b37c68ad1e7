//! Fenced transactions at an isolation level with one snapshot, while their own lease is renewed.

use e2e::servers::until;
use fenced_store::{PgFencedStore, PgIsolation, PgTxOptions};
use lock_core::{Released, Ttl};
use sqlx::PgPool;

use crate::world::{count, database, manager};

const RENEWALS: usize = 3;
const UNTIL: &str = "select (extract(epoch from expires_at) * 1000)::bigint from fenced.lease";

/// The transaction reads and writes no row with the database's state of the lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_section_with_one_snapshot_is_open_over_renewals_of_its_lease_and_commits() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let table = "create table account (balance bigint); insert into account values (100)";
    sqlx::raw_sql(table).execute(&pool).await.unwrap();
    let locks = manager(database.url()).await;
    for (done, level) in (1..).zip([PgIsolation::RepeatableRead, PgIsolation::Serializable]) {
        let options = PgTxOptions::default().isolation(level);
        let store = PgFencedStore::new(pool.clone()).with_options(options);
        let guard = locks.acquire("r").ttl(Ttl::millis(600)).await.unwrap();
        store.claim(guard.sequencer()).await.unwrap();
        let mut tx = store.begin(guard.sequencer()).await.unwrap();
        let read = sqlx::query_scalar("select balance from account");
        let balance: i64 = read.fetch_one(&mut *tx).await.unwrap();
        // The control: the same transaction in another session, which looks at the lease itself.
        let mut control = pool.begin().await.unwrap();
        let snapshot =
            "set transaction isolation level repeatable read; select 1 from fenced.lease";
        sqlx::raw_sql(snapshot)
            .execute(&mut *control)
            .await
            .unwrap();

        for _ in 0..RENEWALS {
            let before = count(&pool, UNTIL).await;
            until("it is renewed", async || count(&pool, UNTIL).await > before).await;
        }
        let write = sqlx::query("update account set balance = $1").bind(balance + 1);
        write.execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(
            count(&pool, "select balance from account").await,
            100 + done
        );

        let look = "select 1 from fenced.lease for share";
        let clash = sqlx::raw_sql(look)
            .execute(&mut *control)
            .await
            .unwrap_err();
        let code = clash.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("40001"), "{level:?}: {clash}");
        drop(control);
        assert!(guard.is_held(), "{level:?}");
        assert_eq!(
            guard.release().await.unwrap(),
            Released::Released,
            "{level:?}"
        );
    }
}
