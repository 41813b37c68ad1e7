//! A file in a folder of its own, and clients of it.

use std::sync::Arc;

use lock_core::backend::{ConnectOptions, TokioRuntime};
use palisade_sqlite::SqliteBackend;
use tempfile::TempDir;

/// A folder for one file. It goes when this is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The URL of the file, which need not be there.
    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("leases.db").display())
    }
}

/// A client.
pub(crate) async fn connect(to: impl Into<ConnectOptions>) -> SqliteBackend {
    let connected = SqliteBackend::connect(to, Arc::new(TokioRuntime)).await;
    connected.unwrap()
}
