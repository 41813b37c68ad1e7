use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::project;

/// The server that `scripts/mysql-server` has put there.
const PROGRAM: &str = "target/tools/mysql/mysqld";

/// The user of the servers made here, with all rights.
const USER: &str = "e2e";

/// Small files and no syncs, as those of MariaDB. The installation needs these settings, too.
const SMALL: [&str; 3] = [
    "--innodb-buffer-pool-size=32M",
    "--innodb-redo-log-capacity=32M",
    "--innodb-flush-method=nosync",
];

/// The files of one MySQL server.
pub(crate) struct MySql {
    dir: PathBuf,
    password: String,
    /// Options of its command line.
    options: Vec<OsString>,
}

impl MySql {
    /// Installs the system tables below `dir`.
    pub(crate) fn create(dir: &Path, options: Vec<OsString>) -> io::Result<Self> {
        let server = Self {
            dir: dir.to_owned(),
            password: format!("{:032x}", rand::random::<u128>()),
            options,
        };
        // On a shared machine anybody may connect to a loopback port: hence a password.
        let user = format!("{USER}@'127.0.0.1'");
        let password = &server.password;
        let create_user = format!(
            "CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{password}';\n\
             GRANT ALL ON *.* TO {user} WITH GRANT OPTION;\n"
        );
        fs::write(server.init_file(), create_user)?;
        server.install()?;
        Ok(server)
    }

    fn install(&self) -> io::Result<()> {
        let mut install = self.program();
        install.arg("--initialize-insecure");
        let output = install.output().map_err(|error| {
            io::Error::other(format!(
                "cannot run {PROGRAM}: {error}: run scripts/mysql-server, or set \
                 PALISADE_TEST_MYSQL_URL"
            ))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let why = [output.stdout, output.stderr].concat();
        let why = String::from_utf8_lossy(&why);
        Err(io::Error::other(format!(
            "MySQL was not installed: {}",
            why.trim()
        )))
    }

    /// The command of the server. Its settings are MySQL's defaults, except for sizes and syncs.
    pub(crate) fn command(&self, port: u16) -> Command {
        let mut command = self.program();
        command
            .arg(format!("--init-file={}", self.init_file().display()))
            .arg(format!("--port={port}"))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args(["--mysqlx=OFF", "--secure-file-priv=NULL"])
            .arg("--socket=mysql.sock") // in the data directory: its path has a limit
            .args([
                "--max-connections=400",
                "--innodb-flush-log-at-trx-commit=2",
                "--sync-binlog=0",
            ]);
        command.args(&self.options);
        command
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let password = &self.password;
        format!("mysql://{USER}:{password}@127.0.0.1:{port}/mysql")
    }

    /// The statements that the server executes whenever it starts.
    fn init_file(&self) -> PathBuf {
        self.dir.join("user.sql")
    }

    fn program(&self) -> Command {
        let mut command = Command::new(project::root().join(PROGRAM));
        command
            .current_dir(&self.dir)
            .env("TMPDIR", &self.dir)
            .arg(format!("--datadir={}", self.dir.join("data").display()))
            // Without this option the server refuses root. It has no meaning for other users.
            .arg("--user=root")
            .args(SMALL);
        command
    }
}
