use clap::{Args, Subcommand, ValueEnum};
use fenced_store::admin::Reason;
use lock_core::{FencingToken, Issuer, ResourceName};

use crate::address::Address;

/// Where a lock service is that others use, too: one in this process would have nothing to tell.
#[derive(Args, Debug)]
pub(crate) struct OperatedLock {
    /// Lock service: `redis://[user:password@]HOST[:PORT][/DB]`,
    /// `redis+sentinel://HOST:PORT,../NAME`, `redis+cluster://HOST:PORT,..`,
    /// `etcd://[user:password@]HOST[:PORT],..` or `zookeeper://HOST:PORT,..[/CHROOT]`; `inspect`
    /// takes `redlock+redis://HOST:PORT,HOST:PORT,HOST:PORT`, too
    #[arg(id = "lock", long, value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    pub(crate) address: Address,
}

/// Where a store is that has its tables already.
#[derive(Args, Debug)]
pub(crate) struct OperatedStore {
    /// Store: `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE` or
    /// `mariadb://..`, with its tables: none are made here
    #[arg(id = "store", long, value_name = "URL")]
    #[arg(env = "PALISADE_STORE", hide_env_values = true)]
    pub(crate) address: Address,
}

/// What has to be said before something happens that cannot be taken back.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// Do it without asking: for scripts. At a terminal you are asked to type the name
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What can be asked about the tables of a store.
#[derive(Debug, Subcommand)]
pub(crate) enum Migrations {
    /// Print what creates the tables of a store, for the database's own client.
    ///
    /// It is what a service does by itself when it starts, for those who read before they run:
    /// apply it by hand, and the service finds nothing to do. For a database that has none of the
    /// tables yet: in one that has, it fails and changes nothing.
    #[command(after_help = APPLY)]
    Print {
        /// For which database
        #[arg(long, value_name = "DATABASE")]
        dialect: DatabaseKind,
    },
}

const APPLY: &str = "\
How to apply it:
  demo-service migrations print --dialect postgres | psql -v ON_ERROR_STOP=1 --dbname=app
  demo-service migrations print --dialect mysql    | mariadb app
  demo-service migrations print --dialect sqlite   | sqlite3 -bail app.db

In Postgres and SQLite all of it is one transaction. In MariaDB and MySQL a change of the schema
cannot be rolled back: if it fails half way, drop the tables that begin with `fenced_` and
`_fenced_migrations`, and start again.

In Postgres the role that applies it owns the marks; docs/operations.md has the rights that
applications and operators need then.";

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

/// What tells everything that is held.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What tells who holds a resource.
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

/// What the store calls a lock service.
#[derive(Args, Debug)]
pub(crate) struct IssuerName {
    /// What the store calls the lock service: give each of several of a kind a name of its own
    /// [default: its kind, such as redis]
    #[arg(
        id = "issuer",
        long = "issuer",
        value_name = "NAME",
        env = "PALISADE_ISSUER"
    )]
    pub(crate) name: Option<Issuer>,
}

/// What ends the lease of a holder that hangs.
#[derive(Args, Debug)]
pub(crate) struct ForceReleaseArgs {
    #[command(flatten)]
    pub(crate) lock: OperatedLock,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// The resource whose holder is to lose its lease
    pub(crate) resource: ResourceName,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What sets a mark by hand.
#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// The resource whose mark is set
    pub(crate) resource: ResourceName,
    /// Where the mark stands now; if it stands elsewhere, nothing is changed
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected: FencingToken,
    /// Raise it to this token: its holder is shut out
    #[arg(long, value_name = "TOKEN", required_unless_present = "lower_to")]
    #[arg(conflicts_with = "lower_to")]
    pub(crate) raise_to: Option<FencingToken>,
    /// Lower it to this token: WHOEVER WAS EVER ISSUED A GREATER ONE MAY CLAIM AND WRITE AGAIN
    #[arg(long, value_name = "TOKEN")]
    pub(crate) lower_to: Option<FencingToken>,
    /// Why, for those who read the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Reason,
    /// Raise it even if no lock service could ever issue a greater token
    #[arg(long, conflicts_with = "lower_to")]
    pub(crate) even_if_implausible: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// What hands a store over to another lock service.
#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// Whose tokens were taken so far
    #[arg(long, value_name = "ISSUER")]
    pub(crate) from: Issuer,
    /// Whose tokens are taken from now on
    #[arg(long, value_name = "ISSUER")]
    pub(crate) to: Issuer,
    /// What its tokens have to be above: no token of the old service may be greater
    #[arg(long, value_name = "TOKEN")]
    pub(crate) above: FencingToken,
    /// Why, for those who read the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Reason,
    /// Take `--above` even if no lock service could ever issue a greater token
    #[arg(long)]
    pub(crate) even_if_implausible: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

pub(super) const MIGRATE: &str = "\
Both ways, first to see what would happen:
  demo-service migrate --from redis://old --from-issuer old --to redis://new --to-issuer new \\
      --store postgres://ops@db/app --dry-run
  demo-service migrate --from redis://new --from-issuer new --to redis://old --to-issuer old \\
      --store postgres://ops@db/app

The names are those under which the services are used: `serve --issuer`, and in Rust
`LockManagerBuilder::issuer`. Lock services of different kinds are told apart without.
docs/operations.md has the whole story.";

/// What has one lock service take the place of another.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {
    /// The lock service that is in place: a URL as --lock of `list` takes it
    #[arg(long, value_name = "URL", hide_env_values = true)]
    #[arg(
        required_unless_present = "from_is_gone",
        conflicts_with = "from_is_gone"
    )]
    pub(crate) from: Option<Address>,
    /// What the store calls it [default: its kind, such as redis]
    #[arg(long, value_name = "NAME")]
    pub(crate) from_issuer: Option<Issuer>,
    /// It is gone for good, so that it can neither be asked nor be retired
    #[arg(long, requires = "from_issuer")]
    pub(crate) from_is_gone: bool,
    /// The lock service that takes its place
    #[arg(long, value_name = "URL", hide_env_values = true)]
    pub(crate) to: Address,
    /// What the store is to call it [default: its kind, such as redis]
    #[arg(long, value_name = "NAME")]
    pub(crate) to_issuer: Option<Issuer>,
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// Why, for those who read the audit
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "another lock service takes its place"
    )]
    pub(crate) reason: Reason,
    /// Tell what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
