//! Files that cannot have leases, and a disk that is full.

use std::sync::Arc;

use lock_core::{
    Attempt, Error, ErrorKind, LockManager, Outcome, Ttl,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_sqlite::SqliteBackend;

use crate::world::{Folder, manager};

async fn refusal(to: impl Into<ConnectOptions>) -> Error {
    let refused = SqliteBackend::connect(to, Arc::new(TokioRuntime)).await;
    let refused = refused.map(drop).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::NotApplied, "{refused}");
    refused
}

#[tokio::test]
async fn a_file_that_cannot_have_leases_is_refused_and_the_error_says_why() {
    let folder = Folder::new();
    let missing = format!("sqlite:{}/missing/leases.db", folder.file().display());
    drop(manager(&folder).await.acquire("r").await.unwrap());
    let text = folder.file().with_extension("txt");
    std::fs::write(&text, "no database ".repeat(1000)).unwrap();
    for (url, kind, why) in [
        (missing, ErrorKind::Refused, "its folder has to exist"),
        (
            format!("sqlite:{}", text.display()),
            ErrorKind::Refused,
            "is no sound database",
        ),
        (
            format!("{}?mode=ro", folder.url()),
            ErrorKind::Refused,
            "is not writable",
        ),
        (
            "sqlite::memory:".to_owned(),
            ErrorKind::InvalidInput,
            "in memory",
        ),
        ("sqlite:".to_owned(), ErrorKind::InvalidInput, "in memory"),
        (
            format!("{}?mod=rw", folder.url()),
            ErrorKind::InvalidInput,
            "no parameter \"mod\"",
        ),
    ] {
        let refused = refusal(url.as_str()).await;
        assert_eq!(refused.kind(), kind, "{url}: {refused}");
        let said = refused.to_string();
        assert!(said.contains(why), "{url}: {said}");
    }
}

/// SQLite itself says that the disk is full, because the number of pages of the file is limited.
#[tokio::test]
async fn a_full_disk_grants_nothing_and_loses_no_lease() {
    let folder = Folder::new();
    manager(&folder).await;
    let options = folder.options().pragma("max_page_count", "16");
    let backend = SqliteBackend::on(&options, ConnectOptions::default(), Arc::new(TokioRuntime));
    let locks = LockManager::builder()
        .build(backend.await.unwrap())
        .unwrap();
    let mut held = Vec::new();
    let refused = loop {
        let name = format!("{:-<200}{}", "r", held.len());
        match locks.acquire(name).ttl(Ttl::secs(600)).try_acquire().await {
            Ok(Attempt::Granted(guard)) => held.push(guard),
            Ok(Attempt::Held { .. }) => unreachable!("no name is used twice"),
            Err(refused) => break refused,
        }
        assert!(held.len() < 10_000, "it is never full");
    };
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert_eq!(refused.outcome(), Outcome::NotApplied);
    let said = format!("{refused:?}");
    assert!(said.contains("the disk of the file is full"), "{said}");

    // The leases that were granted still exist, and can be given back.
    assert!(held.len() > 3, "{}", held.len());
    assert_eq!(locks.list().await.unwrap().len(), held.len());
    let one = held.swap_remove(0);
    one.release().await.unwrap();
}
