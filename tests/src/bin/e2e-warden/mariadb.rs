use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::account::Account;

/// The account that Debian's package creates for the server.
const ACCOUNT: &str = "mysql";

/// The user of the servers made here, with all rights.
const USER: &str = "e2e";

/// Small files, which are written quickly, and no syncs, because nothing has to outlive the
/// machine. The installation needs these settings, too, because it creates the files.
const SMALL: [&str; 4] = [
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--aria-log-file-size=8M",
    "--innodb-flush-method=nosync",
];

/// The files of one MariaDB server.
pub(crate) struct MariaDb {
    dir: PathBuf,
    account: Option<Account>,
    password: String,
    /// Options of its command line.
    options: Vec<OsString>,
}

impl MariaDb {
    /// Installs the system tables below `dir`, which it gives to the account that the server runs
    /// under.
    pub(crate) fn create(dir: &Path, options: Vec<OsString>) -> io::Result<Self> {
        let server = Self {
            dir: dir.to_owned(),
            account: Account::to_run_under(ACCOUNT, dir)?,
            password: format!("{:032x}", rand::random::<u128>()),
            options,
        };
        // On a shared machine anybody may connect to a loopback port: hence a password.
        let create_user = format!(
            "CREATE OR REPLACE USER {USER}@'127.0.0.1' IDENTIFIED BY '{}';\n\
             GRANT ALL ON *.* TO {USER}@'127.0.0.1' WITH GRANT OPTION;\n",
            server.password
        );
        fs::write(server.init_file(), create_user)?;
        if let Some(account) = &server.account {
            account.own(&[dir, &server.init_file()])?;
        }
        server.install()?;
        Ok(server)
    }

    fn install(&self) -> io::Result<()> {
        let mut install = self.program("mariadb-install-db");
        install
            .arg("--no-defaults")
            .arg(self.data())
            .args(["--skip-test-db", "--skip-name-resolve"])
            .args(SMALL);
        let output = install.output().map_err(|error| {
            io::Error::other(format!(
                "cannot run mariadb-install-db: {error}: run scripts/test, which installs what is \
                 missing, or set PALISADE_TEST_MARIADB_URL"
            ))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let why = [output.stdout, output.stderr].concat();
        let why = String::from_utf8_lossy(&why);
        Err(io::Error::other(format!(
            "mariadb-install-db failed: {}",
            why.trim()
        )))
    }

    /// The command of the server. Its settings are MariaDB's defaults, except for sizes and syncs.
    pub(crate) fn command(&self, port: u16) -> Command {
        let mut command = self.program("mariadbd");
        command
            .arg("--no-defaults")
            .arg(self.data())
            .arg(format!("--init-file={}", self.init_file().display()))
            .arg(format!("--port={port}"))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .arg("--socket=mariadb.sock") // in the data directory: its path has a limit
            .args([
                "--max-connections=400",
                "--innodb-flush-log-at-trx-commit=2",
            ])
            .args(SMALL);
        command.args(&self.options);
        command
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let password = &self.password;
        format!("mysql://{USER}:{password}@127.0.0.1:{port}/mysql")
    }

    fn data(&self) -> String {
        format!("--datadir={}", self.dir.join("data").display())
    }

    /// The statements that the server executes whenever it starts: the installation cannot create
    /// users.
    fn init_file(&self) -> PathBuf {
        self.dir.join("user.sql")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        // A server that starts deletes all temporary tables that it finds, even those of other
        // servers.
        command.current_dir(&self.dir).env("TMPDIR", &self.dir);
        if let Some(account) = &self.account {
            account.run(&mut command);
        }
        command
    }
}
