use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use crate::account::Account;

/// The account that PgBouncer of Debian's package runs under.
const ACCOUNT: &str = "postgres";

/// Where Debian keeps PgBouncer, which is not on every user's path.
const DEBIAN: &str = "/usr/sbin/pgbouncer";

/// A PgBouncer in front of a Postgres server, for all of its databases.
pub(crate) struct PgBouncer {
    dir: PathBuf,
    account: Option<Account>,
    server: PgConnectOptions,
    mode: String,
    /// The additional settings of the test.
    more: Vec<String>,
}

impl PgBouncer {
    /// The arguments are the URL of a database, whose user and password are also those of the
    /// clients, the pooling mode, and other settings.
    pub(crate) fn prepare(arguments: &[OsString], dir: &Path) -> io::Result<Self> {
        let [url, mode, more @ ..] = arguments else {
            return Err(io::Error::other("say which database, and the pooling mode"));
        };
        let text = |argument: &OsString| argument.to_string_lossy().into_owned();
        let (url, mode) = (text(url), text(mode));
        let server: PgConnectOptions = url.parse().map_err(io::Error::other)?;
        Ok(Self {
            dir: dir.to_owned(),
            account: Account::to_run_under(ACCOUNT, dir)?,
            server,
            mode,
            more: more.iter().map(text).collect(),
        })
    }

    pub(crate) fn command(&self, port: u16) -> io::Result<Command> {
        let (settings, users) = (self.dir.join("pgbouncer.ini"), self.dir.join("users.txt"));
        fs::write(&settings, self.settings(port, &users))?;
        fs::write(&users, self.users())?;
        let program = if Path::new(DEBIAN).exists() {
            DEBIAN
        } else {
            "pgbouncer"
        };
        let mut command = Command::new(program);
        command.current_dir(&self.dir).arg(&settings);
        if let Some(account) = &self.account {
            account.own(&[&self.dir, &settings, &users])?;
            account.run(&mut command);
        }
        Ok(command)
    }

    /// The settings that docs/operations/postgres.md asks for, with so few connections that clients
    /// share them.
    fn settings(&self, port: u16, users: &Path) -> String {
        format!(
            "[databases]\n\
             * = host={} port={}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = plain\n\
             auth_file = {}\n\
             pool_mode = {}\n\
             default_pool_size = 12\n\
             max_client_conn = 1000\n\
             server_idle_timeout = 2\n\
             ignore_startup_parameters = extra_float_digits\n\
             {}\n",
            self.server.get_host(),
            self.server.get_port(),
            users.display(),
            self.mode,
            // The last setting of a name counts.
            self.more.join("\n"),
        )
    }

    fn users(&self) -> String {
        let url = self.server.to_url_lossy();
        let password = url.password().unwrap_or_default();
        format!("\"{}\" \"{password}\"\n", self.server.get_username())
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let way = self.server.clone().host("127.0.0.1").port(port);
        way.to_url_lossy().to_string()
    }
}
