//! The command line: its commands, and how the help explains them.

mod jobs;
mod operator;
mod redlock;
mod secret;
mod serve;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use self::{
    jobs::{ForgetArgs, Jobs, JobsOf, Place},
    operator::{
        Consent, DatabaseKind, DoctorArgs, ForceReleaseArgs, InspectArgs, IssuerName, ListArgs,
        MigrateArgs, Migrations, ResetArgs,
    },
    redlock::{ProvisionArgs, Redlock, RedlockNodeArgs, RedlockNodesArgs},
    serve::{ServeArgs, SigningArgs},
};
use crate::{address::Address, duration::parse as duration, events::Story};

const EXAMPLES: &str = "\
Examples:
  palisade                                      the scenario, nothing to install
  palisade scenario --lock redis://127.0.0.1:6379 \\
      --store postgres://me@127.0.0.1/app       the same on real servers
  palisade scenario --runs 20 --json            twenty times, one JSON object on stdout
  palisade scenario --story jobs                a job that must run once
  palisade serve                                lock gateway, account API and live page over HTTP,
                                                nothing to install
  palisade serve --lock redis://127.0.0.1:6379 \\
      --store postgres://me@127.0.0.1/app       the same on real servers

Exit codes:
  0    it went as told: unfenced lost an update, fenced lost none
  1    it did not go as told
  2    the arguments are wrong
  3    a server cannot be reached, or refuses us
  4    cannot listen on the address
  5    a file, process or signal of this machine failed
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP)";

/// Shows what happens when a lock holder is paused past its lease, without fencing and with it.
///
/// Two real processes deposit money into one account under a distributed lock. The first is stopped
/// (SIGSTOP) between its check of the lease and its write, for longer than the lease; the second
/// acquires the lock and writes; the first is resumed (SIGCONT) and writes the balance that it had
/// computed. Without fencing the second deposit is lost. With fencing tokens the late write is
/// refused with 412, and nothing is lost.
///
/// Without a subcommand: `scenario` on an in-process lock and a SQLite file in a temporary folder.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// Reads the command from the command line and the environment. A mistake ends the program, as
    /// does a request for help.
    pub(crate) fn read() -> Command {
        Self::of(env::args_os()).chosen()
    }

    /// The command, or the scenario with its defaults when none was given.
    fn chosen(self) -> Command {
        let scenario = || Self::of(["palisade", "scenario"].map(OsString::from));
        self.command.unwrap_or_else(|| scenario().chosen())
    }

    fn of(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let mut command = without_empty_variables(Self::command());
        let matches = command.try_get_matches_from_mut(arguments);
        let matches = matches.unwrap_or_else(|error| error.exit());
        let read = Self::from_arg_matches(&matches);
        read.unwrap_or_else(|error| error.format(&mut command).exit())
    }
}

/// A variable that is empty counts as unset, because many tools that start processes cannot unset
/// one.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|argument| match argument.get_env().is_some_and(is_empty) {
            true => argument.env(None::<&'static str>),
            false => argument,
        })
        .mut_subcommands(without_empty_variables)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play the pause scenario: act 1 without fencing, act 2 with it.
    #[command(after_help = EXAMPLES)]
    Scenario(ScenarioArgs),
    /// Serve the lock gateway and the account API over HTTP.
    ///
    /// Clients in any language acquire leases from it, and read and write accounts that are guarded
    /// by their fencing tokens. /openapi.json describes the whole API, /docs shows it as a web
    /// page, and / plays the pause scenario if the address is a loopback one, as by default.
    #[command(after_help = serve::NOTES)]
    Serve(ServeArgs),
    /// Examine a lock service and a store: versions, settings, rights, tables, clocks.
    ///
    /// Says what is good, what could be better and what has to be changed. Takes a lease of a name
    /// that nobody uses, and releases it; writes nothing else. Exit code 1 if something has to be
    /// changed.
    #[command(after_help = operator::EXIT_CODES)]
    Doctor(DoctorArgs),
    /// List everything that is held or waited for.
    #[command(after_help = operator::EXIT_CODES)]
    List(ListArgs),
    /// Show who holds a resource, and how many wait for it. No secret is shown.
    #[command(after_help = operator::EXIT_CODES)]
    Inspect(InspectArgs),
    /// End the lease of the holder of a resource, and shut that holder out of the store at once.
    #[command(after_help = operator::EXIT_CODES)]
    ForceRelease(ForceReleaseArgs),
    /// Set a high-water mark by hand: for operators, recorded in the store's log of administration.
    ///
    /// A mark that was poisoned with an absurd token locks its resource for good. Lowering it is
    /// the cure, but lets in every client that was ever issued a token above the new mark. Exit
    /// code 1 if the mark is not where it is expected.
    #[command(after_help = operator::EXIT_CODES)]
    ResetHighWater(ResetArgs),
    /// Replace one lock service by another, without a moment in which both count.
    ///
    /// Asks the new service for a lease, and gives the store to it: from then on the store accepts
    /// no claim of the old service, shuts out its holders, and takes tokens of the new one that are
    /// above everything that was accepted. The old service is asked for nothing, and may be gone.
    /// May be interrupted, and repeated until it is done; run it in the other direction to turn
    /// back. The whole store moves, because it has only one issuer. Exit code 1 if the store
    /// accepts tokens of neither, if the new service cannot take over, or if an open transaction
    /// holds up a mark; the message says what to do.
    #[command(after_help = operator::MIGRATE)]
    Migrate(MigrateArgs),
    /// Jobs that run once per slot: what is done or has failed, and having one run again.
    #[command(subcommand, after_help = operator::EXIT_CODES)]
    Jobs(Jobs),
    /// The nodes of a Redlock lock service: bring them into service, and take them out.
    #[command(subcommand, after_help = operator::EXIT_CODES)]
    Redlock(Redlock),
    /// Draw a recording of `scenario --record` or of the live page: both acts, as SVG on stdout.
    #[command(hide = true)]
    Draw {
        /// The file
        #[arg(value_name = "RECORDING.json")]
        recording: PathBuf,
        /// Print a page that plays it, instead
        #[arg(long)]
        play: bool,
    },
    /// Print the tables of a store, as SQL.
    #[command(subcommand)]
    Migrations(Migrations),
    /// Print the API of `serve` as an OpenAPI 3.1 document.
    #[command(hide = true)]
    Openapi,
    /// Print a new line for a file of signing keys.
    SigningKey {
        /// The name of the key in tokens: a letter and up to 31 letters, digits, `-`, `_` or `.`
        #[arg(default_value = "k1")]
        id: String,
        /// Make a pair of keys: the public half, which is printed, too, can check tokens but not
        /// sign them
        #[arg(long)]
        ed25519: bool,
    },
    /// One client of the scenario, which starts, stops and resumes it.
    #[command(hide = true)]
    Worker {
        /// What it does, as JSON
        job: String,
    },
}

/// The address of the lock service.
#[derive(Args, Debug)]
pub(crate) struct Lock {
    /// Lock service: `memory:`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE`,
    /// `redis://[user:password@]HOST[:PORT][/DB]`, `redis+sentinel://HOST:PORT,../NAME`,
    /// `redis+cluster://HOST:PORT,..`, `redlock+redis://HOST:PORT,HOST:PORT,HOST:PORT`,
    /// `etcd://[user:password@]HOST[:PORT],..` or `zookeeper://HOST:PORT,..[/CHROOT]`; over TLS
    /// `rediss` for `redis`, and `etcds` [default: the store if that is a Postgres, else `memory:`]
    #[arg(long = "lock", value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    address: Option<Address>,
}

impl Lock {
    /// The lock service in front of this store.
    pub(crate) fn in_front_of(&self, store: Option<&Address>) -> Address {
        let database = store.filter(|store| store.is_postgres());
        let chosen = self.address.as_ref().or(database);
        chosen.cloned().unwrap_or_else(Address::memory)
    }
}

#[derive(Args, Debug)]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) lock: Lock,
    /// Store: `sqlite:FILE` or `postgres://[user[:password]@]HOST[:PORT]/DATABASE`
    /// [default: a SQLite file in a temporary folder]
    #[arg(
        long,
        value_name = "URL",
        env = "PALISADE_STORE",
        hide_env_values = true
    )]
    pub(crate) store: Option<Address>,
    /// What the two clients want to do
    #[arg(long, value_enum, default_value_t)]
    pub(crate) story: Story,
    /// How many times to play both acts
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Length of a lease, such as 1.5s or 800ms (100ms to 60s)
    #[arg(long, default_value = "1.5s", value_parser = ttl, value_name = "DURATION")]
    pub(crate) ttl: Duration,
    /// How long client 1 stays stopped at least [default: the ttl and 1 s]
    #[arg(long, value_parser = pause, value_name = "DURATION")]
    pub(crate) pause: Option<Duration>,
    /// Print one JSON object and nothing else on stdout; progress goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Where to write the picture of both acts, as SVG
    /// [default: a new file in the temporary folder; with --json: none]
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,
    /// Write the recording, as JSON
    #[arg(long, value_name = "PATH")]
    pub(crate) record: Option<PathBuf>,
    /// Print only the verdicts, without progress and time line
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl ScenarioArgs {
    /// How long client 1 stays stopped at least.
    pub(crate) fn pause(&self) -> Duration {
        self.pause.unwrap_or(self.ttl + Duration::from_secs(1))
    }
}

fn ttl(text: &str) -> Result<Duration, String> {
    within(duration(text)?, "100ms", "60s")
}

fn pause(text: &str) -> Result<Duration, String> {
    within(duration(text)?, "0ms", "10m")
}

fn within(value: Duration, least: &str, most: &str) -> Result<Duration, String> {
    let allowed = duration(least)?..=duration(most)?;
    if allowed.contains(&value) {
        Ok(value)
    } else {
        Err(format!("choose a time from {least} to {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: two options of one name, or a default that is no value.
    #[test]
    fn the_definition_is_sound() {
        without_empty_variables(Cli::command()).debug_assert();
    }
}
