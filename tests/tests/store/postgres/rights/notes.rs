//! Attacks on the parts of a single fenced statement, which every role that writes may call.

use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::{
    postgres::roles::Roles,
    rule::{Harness, by_row, grant},
};

const UPDATE: &str = "UPDATE accounts SET balance = balance + 1 WHERE id = 42";

async fn code_of(connection: &mut PgConnection, statement: &str) -> Option<String> {
    let refused = connection.execute(AssertSqlSafe(statement)).await.err()?;
    let code = refused.as_database_error().unwrap().code();
    Some(code.unwrap().into_owned())
}

/// The note alone takes no lock, so a claim may come before the write.
/// Catches: a role that notes a grant by itself, and writes after the next claim.
#[tokio::test]
async fn a_note_without_the_lock_writes_nothing_after_a_claim() {
    let roles = Roles::as_documented().await;
    let admin = roles.world.store();
    admin.protect(&by_row()).await.unwrap();
    let app = roles.store_of("app").await;
    let old = grant("account:42", 33);
    app.claim(&old).await.unwrap();
    let note = |holder: &str| {
        format!("SELECT fenced.note_fence('account:42', 33, '{holder}', 'redis') IS TRUE AS noted")
    };
    let noted = async |connection: &mut PgConnection, holder: &str| -> bool {
        let note = sqlx::query_scalar(AssertSqlSafe(note(holder)));
        note.fetch_one(connection).await.unwrap()
    };
    let (digest, kept) = (old.holder().digest(), old.holder().kept_digest());

    // The control: before the claim the role can write.
    let mut tx = app.pool().begin().await.unwrap();
    assert!(noted(&mut tx, &digest).await);
    assert_eq!(code_of(&mut tx, UPDATE).await, None);
    tx.rollback().await.unwrap();

    // Another secret does not pass, and the digest in the table does not pass.
    for other in ["another", kept.as_str()] {
        let mut tx = app.pool().begin().await.unwrap();
        assert!(!noted(&mut tx, other).await, "{other}");
        assert_eq!(code_of(&mut tx, UPDATE).await.as_deref(), Some("FN010"));
    }

    let mut tx = app.pool().begin().await.unwrap();
    assert!(noted(&mut tx, &digest).await);
    app.claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(code_of(&mut tx, UPDATE).await.as_deref(), Some("FN001"));
}

/// Catches: a value that is null, wholly or partly, and so passes each condition.
#[tokio::test]
async fn no_fence_of_a_statement_is_null_or_stale() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    let own = grant("account:42", 33);
    app.claim(&own).await.unwrap();
    let digest = own.holder().digest();
    let mut connection = app.pool().acquire().await.unwrap();
    let fits = format!("'account:42', 33, '{digest}', 'redis', 1000");
    let fence =
        |row: &str| format!("SELECT ROW({row})::fenced.statement_grant::fenced.statement_fence");
    assert_eq!(code_of(&mut connection, &fence(&fits)).await, None);
    for hostile in [
        "NULL, NULL, NULL, NULL, NULL".to_owned(),
        fits.replace("'account:42'", "NULL"),
        fits.replace("33", "NULL"),
        fits.replace(&format!("'{digest}'"), "NULL"),
        fits.replace("'redis'", "NULL"),
        fits.replace("33", "32"),
        fits.replace("'account:42'", "repeat('r', 100000)"),
    ] {
        let code = code_of(&mut connection, &fence(&hostile)).await;
        assert!(code.is_some(), "{hostile}");
    }
    let null = "SELECT NULL::fenced.statement_fence";
    assert!(code_of(&mut connection, null).await.is_some());
}
