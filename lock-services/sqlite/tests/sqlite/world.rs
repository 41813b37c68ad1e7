//! A file in a folder of its own, and clients of it.

use std::{path::PathBuf, sync::Arc};

use fenced_store::SqliteFencedStore;
use lock_core::{
    LockManager,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_sqlite::SqliteBackend;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

/// A folder for one file. It is deleted when this is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("leases.db")
    }

    /// The URL of the file, which need not exist.
    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }

    /// The options with which an application opens the file.
    pub(crate) fn options(&self) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new().filename(self.file());
        SqliteFencedStore::recommended(options.create_if_missing(true))
    }

    /// The pool of an application with its data in the same file.
    pub(crate) async fn pool(&self) -> SqlitePool {
        SqlitePool::connect_with(self.options()).await.unwrap()
    }
}

/// A client.
pub(crate) async fn connect(to: impl Into<ConnectOptions>) -> SqliteBackend {
    let connected = SqliteBackend::connect(to, Arc::new(TokioRuntime)).await;
    connected.unwrap()
}

/// A manager.
pub(crate) async fn manager(folder: &Folder) -> LockManager {
    palisade::connect(folder.url()).await.unwrap()
}

/// The result of a query without parameters.
pub(crate) async fn count(pool: &SqlitePool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}
