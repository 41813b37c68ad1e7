use std::{env, fs, path::PathBuf};

use lock_core::Holder;

use super::{Account, Server, free_port, install};
use crate::{figure::BoxError, pinning::Pinning};

impl Server {
    /// An empty Postgres.
    pub(in crate::store) async fn postgres(pinning: Pinning) -> Result<Self, BoxError> {
        let directory = tempfile::tempdir()?;
        let account = Account::for_server("postgres", directory.path())?;
        let programs = programs()?;
        let program =
            |name: &str| Account::command(account.as_ref(), &programs.join(name), directory.path());
        // Anybody may connect to a loopback port, and a superuser can run programs.
        let password = Holder::random().expose();
        fs::write(directory.path().join("password"), &password)?;
        if let Some(account) = &account {
            account.own(&directory.path().join("password"))?;
        }
        install(program("initdb").args([
            "--auth=password",
            "--no-locale",
            "--no-sync",
            "--username=postgres",
            "--pwfile=password",
            "--pgdata=data",
        ]))?;
        let port = free_port()?;
        let mut command = program("postgres");
        command.args(["-D", "data", "-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            // A page takes more space in the log when it is first changed after a checkpoint.
            "checkpoint_timeout=1h",
        ] {
            command.args(["-c", setting]);
        }
        let url = format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres");
        Self::run(command, port, url, directory, pinning).await
    }
}

/// The directory of the newest version that Debian has installed, or the one on the path.
fn programs() -> Result<PathBuf, BoxError> {
    let newest = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| {
            let version = version.ok()?;
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            let programs = version.path().join("bin");
            programs
                .join("postgres")
                .exists()
                .then_some((number, programs))
        })
        .max();
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).find(|programs| programs.join("postgres").exists());
    newest
        .map(|(_, programs)| programs)
        .or(on_path)
        .ok_or_else(|| "postgres is not installed: scripts/test setup does that".into())
}
