use std::{fs, path::Path};

use lock_core::Holder;

use super::{Account, Server, free_port, install};
use crate::{figure::BoxError, pinning::Pinning};

impl Server {
    /// An empty MariaDB.
    pub(in crate::store) async fn mariadb(pinning: Pinning) -> Result<Self, BoxError> {
        let directory = tempfile::tempdir()?;
        let account = Account::for_server("mysql", directory.path())?;
        let program =
            |name: &str| Account::command(account.as_ref(), Path::new(name), directory.path());
        let data = format!("--datadir={}", directory.path().join("data").display());
        install(program("mariadb-install-db").args(["--no-defaults", &data, "--skip-test-db"]))?;
        let password = Holder::random().expose();
        let user = directory.path().join("user.sql");
        fs::write(
            &user,
            format!(
                "CREATE DATABASE bench;\n\
                 CREATE USER bench@'127.0.0.1' IDENTIFIED BY '{password}';\n\
                 GRANT ALL ON bench.* TO bench@'127.0.0.1';\n"
            ),
        )?;
        if let Some(account) = &account {
            account.own(&user)?;
        }
        let port = free_port()?;
        let mut command = program("mariadbd");
        command
            .args(["--no-defaults", &data, "--bind-address=127.0.0.1"])
            .args(["--skip-name-resolve", "--socket=mariadb.sock"])
            .arg(format!("--port={port}"))
            .arg(format!("--init-file={}", user.display()));
        let url = format!("mysql://bench:{password}@127.0.0.1:{port}/bench");
        Self::run(command, port, url, directory, pinning).await
    }
}
