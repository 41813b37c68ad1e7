//! Attacks by a reader of our tables, of a backup, of lists, or of notices.

use fenced_store::FenceError;
use lock_core::Sequencer;
use sqlx::{Executor, Row, postgres::PgListener};

use super::refusal;
use crate::{
    postgres::roles::Roles,
    rule::{Harness, assert_kind, grant},
};

async fn text(roles: &Roles, query: &'static str) -> String {
    let pool = roles.world.store().pool();
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

/// The mark may be read in a backup, by a role that may read our tables, or in the output of an
/// older query.
/// Catches: a store that keeps a text with which its reader could write.
#[tokio::test]
async fn the_digest_in_a_mark_lets_no_reader_in() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let grant = grant("account:42", 33);
    app.claim(&grant).await.unwrap();
    let kept = text(&roles, "SELECT holder::text FROM fenced.high_water_mark").await;
    assert_eq!(kept, grant.holder().kept_digest());
    for attack in [
        "SELECT fenced.begin_fenced('account:42', 33, $1, 'redis')",
        "SELECT fenced.claim('account:42', 33, $1, 'redis')",
        "SELECT fenced.settle('account:42', 33, $1, 'redis')",
    ] {
        let refused = sqlx::query(attack).bind(&kept).execute(app.pool()).await;
        assert_eq!(refusal(&refused.unwrap_err()).0, "FN002", "{attack}");
        // The control: the presented text is accepted.
        let presented = grant.holder().digest();
        let let_in = sqlx::query(attack).bind(presented).execute(app.pool());
        let_in.await.unwrap();
    }
}

/// Catches: a lease that a reader of the table, of a list or of a notice can renew or end.
#[tokio::test]
async fn the_shown_parts_of_a_lease_let_no_reader_in() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let mut ears = PgListener::connect_with(app.pool()).await.unwrap();
    ears.listen("c").await.unwrap();
    let acquire = "SELECT token FROM fenced.acquire('r', 'night-batch-7f3a', 'a', 60000)";
    let token: i64 = sqlx::query_scalar(acquire)
        .fetch_one(app.pool())
        .await
        .unwrap();
    let wait = "SELECT outcome FROM fenced.acquire('r', 'w', 'try', 60000, NULL, $1)";
    for channel in ["c", ""] {
        let waits = sqlx::query(wait).bind(channel).execute(app.pool());
        waits.await.unwrap();
    }
    let kept = text(&roles, "SELECT holder FROM fenced.lease").await;
    let shown = text(&roles, "SELECT holder FROM fenced.leases()").await;
    assert!(
        kept.starts_with(&shown) && shown.len() == 16,
        "{kept} {shown}"
    );
    for secret in [&kept, &shown] {
        let renew = "SELECT outcome FROM fenced.renew('{r}', ARRAY[$1], ARRAY[$2], '{1000}')";
        let renewed: String = sqlx::query_scalar(renew)
            .bind(token)
            .bind(secret)
            .fetch_one(app.pool())
            .await
            .unwrap();
        assert_eq!(renewed, "not_holder");
        let release = "SELECT outcome FROM fenced.release('r', $1, $2)";
        let released: String = sqlx::query_scalar(release)
            .bind(token)
            .bind(secret)
            .fetch_one(app.pool())
            .await
            .unwrap();
        assert_eq!(released, "not_holder");
    }
    // A waiter without a channel is named on no channel.
    let nobodys = app.pool().execute("SELECT fenced.look('')").await;
    assert_eq!(refusal(&nobodys.unwrap_err()).0, "23514");

    let looked = "SELECT holder, attempt FROM fenced.look('c')";
    let row = app.pool().fetch_all(looked).await.unwrap();
    assert!(
        row.len() <= 1,
        "the second one has taken the place to another channel"
    );
    let wait = sqlx::query(wait).bind("c").execute(app.pool());
    wait.await.unwrap();
    let row = app.pool().fetch_one(looked).await.unwrap();
    let waiter = text(&roles, "SELECT holder FROM fenced.waiter").await;
    let (holder, attempt): (String, String) = (row.get(0), row.get(1));
    assert_eq!(holder, waiter[..16]);
    assert_ne!(attempt, "try");

    let release = "SELECT outcome FROM fenced.release('r', $1, 'night-batch-7f3a')";
    let released: String = sqlx::query_scalar(release)
        .bind(token)
        .fetch_one(app.pool())
        .await
        .unwrap();
    assert_eq!(
        released, "released",
        "the control: so is the presented text let in"
    );
    let notice = ears.recv().await.unwrap();
    assert_eq!(notice.payload(), format!("r {holder}"));
}

/// The presented text was documented as the holder of a lease of a gateway: half of the secret's
/// SHA-256.
/// Catches: a change of the kept digest that refuses callers which present the same text as before.
#[tokio::test]
async fn callers_present_what_they_did_before() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let own: Sequencer = grant("account:42", 33);
    app.claim(&own).await.unwrap();
    let documented = "SELECT fenced.begin_fenced(
        'account:42', 33, left(encode(sha256(decode($1, 'hex')), 'hex'), 32), 'redis')";
    let entered = sqlx::query(documented)
        .bind(own.holder().expose())
        .execute(app.pool());
    entered.await.unwrap();
    let other = grant("account:42", 33);
    let refused: FenceError = sqlx::query(documented)
        .bind(other.holder().expose())
        .execute(app.pool())
        .await
        .unwrap_err()
        .into();
    assert_kind!(refused, DuplicateToken);
}
