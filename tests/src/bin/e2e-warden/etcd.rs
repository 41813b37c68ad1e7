use std::{ffi::OsString, path::Path, process::Command};

/// A node of etcd, alone or in a cluster.
pub(crate) struct Etcd {
    /// Its name, its addresses for the others, the others' addresses, and the test's own arguments.
    arguments: Vec<OsString>,
}

impl Etcd {
    pub(crate) const fn new(arguments: Vec<OsString>) -> Self {
        Self { arguments }
    }

    pub(crate) fn command(&self, port: u16, dir: &Path) -> Command {
        let scheme = if self.speaks_tls() { "https" } else { "http" };
        let address = format!("{scheme}://127.0.0.1:{port}");
        let mut command = Command::new("etcd");
        command
            .current_dir(dir)
            .args(["--data-dir", "data"])
            .args(["--listen-client-urls", &address])
            .args(["--advertise-client-urls", &address])
            .args(["--logger", "zap", "--log-outputs", "stderr"])
            .args(&self.arguments);
        command
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let scheme = if self.speaks_tls() { "etcds" } else { "etcd" };
        format!("{scheme}://127.0.0.1:{port}")
    }

    fn speaks_tls(&self) -> bool {
        self.arguments
            .iter()
            .any(|argument| argument == "--cert-file")
    }
}
