//! What a transaction leaves in the audit: its rows, if and only if it was committed.

use fenced_store::FencedStore;

use super::{Harness, balance, fresh, grant};

/// A row of the audit, but for its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditRow {
    pub(crate) tx: String,
    pub(crate) db_user: Option<String>,
    pub(crate) resource: String,
    pub(crate) token: i64,
    pub(crate) issuer: String,
    pub(crate) holder: String,
    pub(crate) seq: Option<i64>,
}

async fn audited<H: Harness>() -> (H, FencedStore<H::Db>) {
    let world: H = fresh().await;
    let store = world.store().clone().audited(true);
    (world, store)
}

pub(crate) async fn a_commit_leaves_a_row_for_each_resource<H: Harness>() {
    let (world, store) = audited::<H>().await;
    let (one, two) = (grant("account:1", 33), grant("account:2", 7));
    store.claim(&one).await.unwrap();
    store.claim(&two).await.unwrap();
    let mut tx = store.begin(&two).and(&one).seq(5).await.unwrap();
    let name = tx.name();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    let second = store.begin(&two).await.unwrap();
    let second_name = second.name();
    second.commit().await.unwrap();

    let rows = world.audit().await;
    let user = rows[0].db_user.clone();
    assert_ne!(user.as_deref(), Some(""));
    let row = |tx: &str, grant: &lock_core::Sequencer, seq| AuditRow {
        tx: tx.to_owned(),
        db_user: user.clone(),
        resource: grant.resource().to_string(),
        token: i64::from(grant.token()),
        issuer: "redis".to_owned(),
        holder: grant.holder().fingerprint(),
        seq,
    };
    let expected = [
        row(&name, &one, Some(5)),
        row(&name, &two, Some(5)),
        row(&second_name, &two, None),
    ];
    assert_eq!(rows, expected);
}

pub(crate) async fn what_is_not_committed_leaves_no_row<H: Harness>() {
    let (world, store) = audited::<H>().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    drop(store.begin(&old).await.unwrap());
    let mut tx = store.begin(&old).await.unwrap();
    let undecided = tx.begin().await.unwrap();
    drop(undecided);
    assert!(tx.commit().await.is_err());
    store.claim(&new).await.unwrap();
    assert!(store.begin(&old).await.is_err());
    assert_eq!(world.audit().await, []);
    assert_eq!(balance(&world).await, 100);
}

pub(crate) async fn no_audit_unless_asked_for<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    super::fenced_add(&world, &grant).await.unwrap();
    assert_eq!(world.audit().await, []);
}

/// Whoever reads the audit cannot pose as the holder.
pub(crate) async fn no_secret_in_the_audit<H: Harness>() {
    let (world, store) = audited::<H>().await;
    let grant = grant("account:42", 33);
    store.claim(&grant).await.unwrap();
    store
        .begin(&grant)
        .seq(1)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let text = format!("{:?}", world.audit().await);
    assert!(text.contains(&grant.holder().fingerprint()));
    assert!(!text.contains(&grant.holder().expose()) && !text.contains(&grant.holder().digest()));
    let everything = world.dump().await;
    assert!(
        everything.contains(&grant.holder().fingerprint()),
        "{everything}"
    );
    assert!(
        !everything.contains(&grant.holder().expose()),
        "{everything}"
    );
}
