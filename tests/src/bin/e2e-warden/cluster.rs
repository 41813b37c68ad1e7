use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::wall_clock;

use crate::account::Account;

/// The superuser of the clusters made here, and the account they run under.
const SUPERUSER: &str = "postgres";

/// Where Debian and Ubuntu keep the server programs, one directory per version, not on the path.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The files of one Postgres server.
pub(crate) struct Cluster {
    programs: PathBuf,
    dir: PathBuf,
    account: Option<Account>,
    password: String,
    settings: Vec<OsString>,
    has_own_clock: bool,
}

/// The source of the files of a cluster.
enum Origin<'a> {
    New,
    CopyOf(&'a str),
    StandbyOf(&'a str),
}

impl Cluster {
    /// Makes a cluster below `dir`, which it gives to the account that the server runs under.
    pub(crate) fn create(
        dir: &Path,
        mut arguments: Vec<OsString>,
        has_own_clock: bool,
    ) -> io::Result<Self> {
        let first = arguments.first().and_then(|first| first.to_str());
        let first = first.unwrap_or_default().to_owned();
        let origin = if let Some(url) = first.strip_prefix("--copy-of=") {
            Origin::CopyOf(url)
        } else if let Some(url) = first.strip_prefix("--standby-of=") {
            Origin::StandbyOf(url)
        } else {
            Origin::New
        };
        if !matches!(origin, Origin::New) {
            arguments.remove(0);
        }
        let cluster = Self {
            programs: find_programs()?,
            dir: dir.to_owned(),
            account: Account::to_run_under(SUPERUSER, dir)?,
            password: match origin {
                Origin::New => format!("{:032x}", rand::random::<u128>()),
                Origin::CopyOf(url) | Origin::StandbyOf(url) => password_in(url)?,
            },
            settings: arguments,
            has_own_clock,
        };
        if let Some(account) = &cluster.account {
            account.own(&[dir])?;
        }
        match origin {
            Origin::New => cluster.initialise(dir)?,
            Origin::CopyOf(url) => run(cluster.base_backup(url))?,
            Origin::StandbyOf(url) => {
                let mut standby = cluster.base_backup(url);
                standby.arg("--write-recovery-conf");
                run(standby)?;
            }
        }
        Ok(cluster)
    }

    fn initialise(&self, dir: &Path) -> io::Result<()> {
        // On a shared machine anybody may connect to a loopback port, and a superuser of Postgres
        // runs programs: hence a password. SCRAM would cost the server half of each connection.
        let password_file = dir.join("password");
        fs::write(&password_file, &self.password)?;
        if let Some(account) = &self.account {
            account.own(&[&password_file])?;
        }
        let mut initdb = self.program("initdb");
        initdb
            .args(["--auth=md5", "--encoding=UTF8", "--no-locale", "--no-sync"])
            .args(["--username", SUPERUSER, "--pwfile"])
            .arg(&password_file)
            .arg("--pgdata")
            .arg(self.data());
        run(initdb)
    }

    /// Makes a copy of all the present data of another server.
    fn base_backup(&self, url: &str) -> Command {
        let mut base_backup = self.program("pg_basebackup");
        base_backup
            .args(["--checkpoint=fast", "--no-sync", "--dbname", url])
            .arg("--pgdata")
            .arg(self.data());
        base_backup
    }

    /// The command of the server. Nothing that it writes has to outlive the machine, so it never
    /// syncs.
    pub(crate) fn command(&self, port: u16) -> io::Result<Command> {
        let mut command = self.program("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=", // their paths have a limit that a temp dir may exceed
            "logging_collector=off",
            "max_connections=200",
            "shared_buffers=32MB",
            "fsync=off",
            "full_page_writes=off",
        ] {
            command.args(["-c", setting]);
        }
        command.args(&self.settings);
        if self.has_own_clock {
            wall_clock::make_movable(&mut command, &self.dir)?;
        }
        Ok(command)
    }

    pub(crate) fn url(&self, port: u16) -> String {
        let password = &self.password;
        format!("postgres://{SUPERUSER}:{password}@127.0.0.1:{port}/postgres")
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.dir);
        if let Some(account) = &self.account {
            account.run(&mut command);
        }
        command
    }
}

fn run(mut program: Command) -> io::Result<()> {
    let output = program.output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let name = program.get_program().display();
    Err(io::Error::other(format!("{name} failed: {}", why.trim())))
}

/// A copy has the passwords of the original.
fn password_in(url: &str) -> io::Result<String> {
    let password = || {
        let (login, _) = url.strip_prefix("postgres://")?.split_once('@')?;
        Some(login.split_once(':')?.1.to_owned())
    };
    password().ok_or_else(|| io::Error::other("the URL of the original has no password"))
}

/// The directory of `postgres` and `initdb`: the newest of Debian's, or the one on the path.
fn find_programs() -> io::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path)
        .map(|dir| dir.join("postgres"))
        .find_map(|program| program.canonicalize().ok()) // initdb is next to what a link points to
        .and_then(|program| program.parent().map(Path::to_owned));
    newest_of_debian().or(on_path).ok_or_else(|| {
        io::Error::other(
            "postgres is not installed: run scripts/test, which installs what is missing, \
             or set PALISADE_TEST_POSTGRES_URL",
        )
    })
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).ok()?.flatten();
    let newest = versions
        .filter(|version| version.path().join("bin/postgres").exists())
        .filter_map(|version| {
            let number: u32 = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .max_by_key(|(number, _)| *number);
    newest.map(|(_, programs)| programs)
}
