//! The command line: its commands, and how the help explains them.

mod jobs;
mod operator;
mod redlock;
mod run;
mod secret;
mod serve;

use std::{
    env,
    ffi::{OsStr, OsString},
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::serve::{NOTES, ServeArgs};
pub(crate) use self::{
    jobs::{ForgetArgs, Jobs, JobsOf, Place},
    operator::{
        Consent, DatabaseKind, DoctorArgs, ForceReleaseArgs, ForgetMarksArgs, InspectArgs,
        IssuerName, ListArgs, MigrateArgs, Migrations, ResetArgs,
    },
    redlock::{ProvisionArgs, Redlock, RedlockNodeArgs, RedlockNodesArgs},
    run::RunArgs,
    serve::SigningArgs,
};
use crate::address::Address;

const EXAMPLES: &str = "\
Examples:
  palisade serve                                lock gateway over HTTP, nothing to install
  palisade serve --lock redis://127.0.0.1:6379 \\
      --store postgres://me@127.0.0.1/app       the same on real servers
  palisade doctor --store postgres://me@127.0.0.1/app
                                                what to change before you use it";

/// Locks with fencing tokens: a gateway over HTTP, and commands for operators.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads these arguments, and the variables of the environment that replace some of them. A mistake
/// ends the program, and so does a request for help.
pub fn read<C: CommandFactory + FromArgMatches>(
    arguments: impl IntoIterator<Item = OsString>,
) -> C {
    let mut command = without_empty_variables(C::command());
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.unwrap_or_else(|error| error.exit());
    let read = C::from_arg_matches(&matches);
    read.unwrap_or_else(|error| error.format(&mut command).exit())
}

/// An empty variable counts as unset, because many tools that start processes cannot unset a
/// variable.
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
    /// Serve the lock gateway over HTTP.
    ///
    /// Clients in any language acquire leases from it. The fencing tokens of the leases guard the
    /// writes of the clients. /openapi.json describes the API, and /docs shows it as a web page.
    #[command(after_help = NOTES)]
    Serve(ServeArgs),
    /// Run a command under a lease, and end it before the lease ends.
    ///
    /// Acquires the lease, claims its token in the store if a store is named, starts the command,
    /// renews the lease while the command runs, releases it afterwards, and exits with the exit
    /// code of the command. Prints nothing unless something fails; at a terminal it also says why
    /// the command was not run.
    #[command(after_help = run::NOTES)]
    Run(RunArgs),
    /// Examine a lock service and a store: versions, settings, rights, tables, clocks.
    ///
    /// Says what is good, what could be better and what has to be changed. Acquires a lease of a
    /// name that is not in use, and releases it; writes nothing else. Exit code 1 if something has
    /// to be changed.
    #[command(after_help = operator::EXIT_CODES)]
    Doctor(DoctorArgs),
    /// List all resources with a holder or waiters.
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
    /// A mark that was poisoned with an absurd token locks its resource permanently. Lower the mark
    /// as the remedy. A lower mark lets in every client that ever got a token above it. Exit code 1
    /// if the mark is another one than expected.
    #[command(after_help = operator::EXIT_CODES)]
    ResetHighWater(ResetArgs),
    /// Forget the marks of idle resources, and print the floor that replaces them.
    ///
    /// Each resource that was ever locked has a mark. This command deletes the marks that are older
    /// than --older-than, and the rows of leases in the same database. From then on a resource
    /// without a mark accepts only tokens above the floor, so a late holder stays shut out. `serve`
    /// does this by itself, if its role may. The command is refused if tokens follow neither the
    /// clock nor one revision.
    #[command(after_help = operator::EXIT_CODES)]
    ForgetMarks(ForgetMarksArgs),
    /// Replace one lock service by another. Tokens of both never count at the same time.
    ///
    /// Asks the new service for a lease, and hands the store over to it: from then on the store
    /// accepts no claim of the old service, shuts out its holders, and accepts tokens of the new
    /// service that are above all tokens before. The old service gets no request, and may be gone.
    /// The command may be interrupted, and repeated until it is done; run it in the other direction
    /// to turn back. The whole store moves, because it has only one issuer. Exit code 1 if the
    /// store accepts tokens of neither service, if the new service cannot take over, or if an open
    /// transaction holds up a mark; the message says what to do.
    #[command(after_help = operator::MIGRATE)]
    Migrate(MigrateArgs),
    /// Jobs that run once per slot: show the state of slots, and let a slot run again.
    #[command(subcommand, after_help = operator::EXIT_CODES)]
    Jobs(Jobs),
    /// The nodes of a Redlock lock service: bring them into service, and take them out.
    #[command(subcommand, after_help = operator::EXIT_CODES)]
    Redlock(Redlock),
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
        /// Make a pair of keys; the public half, which is printed, too, can check tokens but not
        /// sign them
        #[arg(long)]
        ed25519: bool,
    },
}

/// The address of the lock service.
#[derive(Args, Debug)]
pub struct Lock {
    /// Lock service: `memory:`, `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE`,
    /// `mysql://user:password@HOST[:PORT]/DATABASE`,
    /// `redis://[user:password@]HOST[:PORT][/DB]`, `redis+sentinel://HOST:PORT,../NAME`,
    /// `redis+cluster://HOST:PORT,..`, `redlock+redis://HOST:PORT,HOST:PORT,HOST:PORT`,
    /// `etcd://[user:password@]HOST[:PORT],..` or `zookeeper://HOST:PORT,..[/CHROOT]`; over TLS
    /// `rediss` for `redis`, and `etcds` [default: the store, or `memory:` if none is named]
    #[arg(long = "lock", value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    address: Option<Address>,
}

impl Lock {
    /// The lock service in front of this store.
    #[must_use]
    pub fn in_front_of(&self, store: Option<&Address>) -> Address {
        let database = store.filter(|store| store.is_database());
        let chosen = self.address.as_ref().or(database);
        chosen.cloned().unwrap_or_else(Address::memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: two options with the same name, or a default that is no value.
    #[test]
    fn the_definition_is_sound() {
        without_empty_variables(Cli::command()).debug_assert();
    }
}
