use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use fenced_store::admin::Reason;
use lock_core::{FencingToken, Issuer, ResourceName};

use super::secret::secrets;
use crate::{address::Address, duration::within};

/// The exit codes of the commands for operators.
macro_rules! exit_codes {
    () => {
        concat!(
            secrets!(),
            "

Exit codes:
  0    the work is done, or there was nothing to do, as the output says
  1    the state was not as the command expects; the message says what was changed, and what to do
  2    the arguments are wrong, or the action was not confirmed
  3    a server cannot be reached, refuses us, or lacks our tables
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP)"
        )
    };
}

pub(super) const EXIT_CODES: &str = exit_codes!();

/// A lock service that other processes use, too. A lock service in this process would have nothing
/// to show.
#[derive(Args, Debug)]
pub(crate) struct OperatedLock {
    /// Lock service: `postgres://[user[:password]@]HOST[:PORT]/DATABASE`,
    /// `redis://[user:password@]HOST[:PORT][/DB]`,
    /// `redis+sentinel://HOST:PORT,../NAME`, `redis+cluster://HOST:PORT,..`,
    /// `redlock+redis://HOST:PORT,HOST:PORT,HOST:PORT`, `etcd://[user:password@]HOST[:PORT],..` or
    /// `zookeeper://HOST:PORT,..[/CHROOT]`; over TLS `rediss` for `redis`, and `etcds`
    #[arg(id = "lock", long, value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    pub(crate) address: Address,
}

/// A store that already has its tables.
#[derive(Args, Debug)]
pub(crate) struct OperatedStore {
    /// Store: `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE` or `mariadb://..`;
    /// its tables must exist, because this command creates none
    #[arg(id = "store", long, value_name = "URL")]
    #[arg(env = "PALISADE_STORE", hide_env_values = true)]
    pub(crate) address: Address,
}

/// The consent to an action that cannot be undone.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Do not ask for confirmation, in a script; without it, you have to type the name at a
    /// terminal
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Commands about the tables of a store.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrations {
    /// Print the SQL that creates the tables of a store, for the database's own client.
    ///
    /// A service creates the tables by itself when it starts. If you want to read the SQL first,
    /// apply it by hand: the service then finds nothing to do. The SQL is for a database without
    /// any of the tables. In a database with tables it fails and changes nothing.
    #[command(after_help = APPLY)]
    Print {
        /// The kind of database
        #[arg(long, value_name = "DATABASE")]
        dialect: DatabaseKind,
    },
    /// Create the tables of a gateway and of its store, as the role that will own them.
    ///
    /// A gateway does the same by itself when it starts, if its role may. If the role of the
    /// gateway should own nothing, run this as the owner before you start each new version.
    #[command(after_help = EXIT_CODES)]
    Apply {
        /// Store: `sqlite:FILE` or `postgres://[user[:password]@]HOST[:PORT]/DATABASE`
        #[arg(
            long,
            value_name = "URL",
            env = "PALISADE_STORE",
            hide_env_values = true
        )]
        store: Address,
    },
}

const APPLY: &str = "\
How to apply it:
  palisade migrations print --dialect postgres | psql -v ON_ERROR_STOP=1 --dbname=app
  palisade migrations print --dialect mysql    | mariadb app
  palisade migrations print --dialect sqlite   | sqlite3 -bail app.db

In Postgres and SQLite all of it is one transaction. In MariaDB and MySQL a change of the schema
cannot be rolled back: if it fails half way, drop the tables that begin with `fenced_` and
`_fenced_migrations`, and start again.

In Postgres the role that applies the SQL owns the marks; docs/operations/rights.md has the rights
that applications and operators then need.";

/// A kind of database.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DatabaseKind {
    /// PostgreSQL 12 or newer
    Postgres,
    /// MySQL 8, MariaDB 10.6 or newer
    #[value(alias = "mariadb")]
    Mysql,
    /// SQLite
    Sqlite,
}

/// Arguments for examining a set-up.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("examined").required(true).multiple(true).args(["lock", "store"]))]
pub(crate) struct DoctorArgs {
    /// Lock service: a URL as for `list` [default: the store, if that is a Postgres]
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_LOCK",
        hide_env_values = true
    )]
    pub(crate) lock: Option<Address>,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    /// Store: `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE` or `mariadb://..`
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<Address>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments for listing everything that is held.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments for inspecting a resource.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    /// The resource, such as `account:42`
    pub(crate) resource: ResourceName,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// The store's name for a lock service.
#[derive(Args, Debug)]
pub(crate) struct IssuerName {
    /// The store's name for the lock service; if there are several of a kind, give each its own
    /// name [default: its kind, such as redis]
    #[arg(
        id = "issuer",
        long = "issuer",
        value_name = "NAME",
        env = "PALISADE_ISSUER"
    )]
    pub(crate) name: Option<Issuer>,
}

/// Arguments for ending the lease of a holder that hangs.
#[derive(Args, Debug)]
pub(crate) struct ForceReleaseArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// The resource whose holder should lose its lease
    pub(crate) resource: ResourceName,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments for forgetting the marks of idle resources.
#[derive(Args, Debug)]
pub(crate) struct ForgetMarksArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// Forget the marks of resources that were not locked for this time (1h or more)
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = age)]
    pub(crate) older_than: Duration,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

fn age(text: &str) -> Result<Duration, String> {
    within(text, "1h", "100000h")
}

/// Arguments for setting a mark by hand.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("new_mark").required(true).args(["raise_to", "lower_to"]))]
#[command(group = ArgGroup::new("what").required(true).args(["resource", "floor"]))]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// The resource whose mark is set
    pub(crate) resource: Option<ResourceName>,
    /// Lower the floor of all resources whose marks are forgotten; `forget-marks` prints the floor
    #[arg(long, conflicts_with = "raise_to")]
    pub(crate) floor: bool,
    /// The present mark; if it is another one, nothing is changed. In Postgres `SELECT * FROM
    /// fenced.high_water('RESOURCE')` shows it, in other databases the table
    /// `fenced_high_water_mark`
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected: FencingToken,
    /// Raise the mark to this token, which shuts out its holder
    #[arg(long, value_name = "TOKEN")]
    pub(crate) raise_to: Option<FencingToken>,
    /// Lower the mark to this token: EVERY HOLDER OF A GREATER TOKEN MAY CLAIM AND WRITE AGAIN
    #[arg(long, value_name = "TOKEN")]
    pub(crate) lower_to: Option<FencingToken>,
    /// The reason, for readers of the store's log of administration
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Reason,
    /// Raise the mark even if no lock service could ever issue a greater token
    #[arg(long, conflicts_with = "lower_to")]
    pub(crate) even_if_implausible: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const MIGRATE: &str = concat!(
    "\
Both ways, first to see what would happen:
  palisade migrate --from-issuer old --to redis://new --to-issuer new \\
      --store postgres://ops@db/app --dry-run
  palisade migrate --from-issuer new --to redis://old --to-issuer old \\
      --store postgres://ops@db/app

At a terminal the command asks for confirmation; in a script add --yes.

The names are those under which the services are used: `serve --issuer`, and in Rust
`LockManagerBuilder::issuer`. Lock services of different kinds have different names by default.
docs/operations/another-lock-service.md has the whole story.

",
    exit_codes!()
);

/// Arguments for replacing one lock service by another.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {
    /// The store's name for the present lock service, which gets no request
    #[arg(long, value_name = "NAME")]
    pub(crate) from_issuer: Issuer,
    /// The new lock service: a URL as for --lock of `list`
    #[arg(long, value_name = "URL", env = "PALISADE_TO", hide_env_values = true)]
    pub(crate) to: Address,
    /// The store's name for the new lock service [default: its kind, such as redis]
    #[arg(long, value_name = "NAME")]
    pub(crate) to_issuer: Option<Issuer>,
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// The reason, for readers of the store's log of administration
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "another lock service takes its place"
    )]
    pub(crate) reason: Reason,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
