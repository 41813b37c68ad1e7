//! Files of signing keys, and gateways that read them.

use std::{fs, path::PathBuf, process::Command};

use e2e::warden::workspace_binary;
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::gateway::Gateway;

/// A file of keys and a store that several gateways share.
pub(crate) struct KeyFile {
    folder: TempDir,
    store: String,
    lock: String,
}

impl KeyFile {
    pub(crate) fn new() -> Self {
        Self::on("memory:")
    }

    /// With a lock service that they share as well.
    pub(crate) fn on(lock: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let lock = lock.to_owned();
        Self {
            folder,
            store,
            lock,
        }
    }

    fn keys(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    pub(crate) fn write_keys(&self, lines: &[&str]) {
        fs::write(self.keys(), lines.concat()).unwrap();
    }

    pub(crate) async fn gateway(&self) -> Gateway {
        let keys = self.keys();
        let keys = ["--signing-keys", keys.to_str().unwrap()];
        let servers = ["--lock", &self.lock, "--store", &self.store];
        Gateway::start_with(&[&servers[..], &keys].concat()).await
    }
}

pub(crate) fn new_key(id: &str) -> String {
    signing_key(&[id])
}

pub(crate) fn signing_key(arguments: &[&str]) -> String {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    let output = command.arg("signing-key").args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has a gateway read its keys again, and returns which key signs then.
pub(crate) async fn reload(gateway: &mut Gateway) -> String {
    let line = hang_up(gateway).await;
    let id = line.strip_prefix("signing keys read again, ").unwrap();
    id.strip_suffix(" signs").unwrap().to_owned()
}

pub(crate) async fn hang_up(gateway: &mut Gateway) -> String {
    kill_process(gateway.process.id(), Signal::HUP).unwrap();
    gateway.process.line().await.unwrap()
}
