//! The command line: its commands, and how the help explains them.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Parser, Subcommand, builder::BoolishValueParser};
use palisade_cli::{Address, Lock, NOTES, duration::within, read};

use crate::events::Story;

const EXAMPLES: &str = "\
Examples:
  palisade-demo                                 the scenario, nothing to install
  palisade-demo scenario --lock redis://127.0.0.1:6379 \\
      --store postgres://me@127.0.0.1/app       the same on real servers
  palisade-demo scenario --runs 20 --json       twenty times, one JSON object on stdout
  palisade-demo scenario --story jobs           a job that must run once
  palisade-demo serve                           lock gateway, account API and live page over HTTP,
                                                nothing to install

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
#[command(name = "palisade-demo", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// Reads the command from the command line and the environment. A mistake ends the program, and
    /// so does a request for help.
    pub(crate) fn read() -> Command {
        read::<Self>(env::args_os()).chosen()
    }

    /// The command, or the scenario with its defaults when none was given.
    fn chosen(self) -> Command {
        let scenario = || read::<Self>(["palisade-demo", "scenario"].map(OsString::from));
        self.command.unwrap_or_else(|| scenario().chosen())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play the pause scenario: act 1 without fencing, act 2 with it.
    #[command(after_help = EXAMPLES)]
    Scenario(ScenarioArgs),
    /// Serve the lock gateway and the account API over HTTP.
    ///
    /// Clients in any language acquire leases from it, and read and write accounts that the fencing
    /// tokens guard. /openapi.json describes the whole API, and /docs shows it as a web page. On a
    /// loopback address, which is the default, / plays the pause scenario. Without --store, account
    /// 42 is open.
    #[command(after_help = NOTES)]
    Serve(DemoArgs),
    /// Draw a recording of `scenario --record` or of the live page: both acts, as SVG on stdout.
    #[command(hide = true)]
    Draw {
        /// The file
        #[arg(value_name = "RECORDING.json")]
        recording: PathBuf,
        /// Print a page that plays the recording
        #[arg(long)]
        play: bool,
    },
    /// Print the API of `serve` as an OpenAPI 3.1 document.
    #[command(hide = true)]
    Openapi,
    /// Run one client of the scenario. The scenario starts, stops and resumes this process.
    #[command(hide = true)]
    Worker {
        /// The work of the client, as JSON
        job: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) gateway: palisade_cli::ServeArgs,
    /// Serve the live page at /, which starts processes, writes accounts and shows all holders,
    /// without a token; only on a loopback address [default: true on a loopback address, unless
    /// there are --allowed-hosts, which means a proxy, or an --admin-token]
    #[arg(long, env = "PALISADE_LIVE_PAGE", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(default_missing_value = "true", value_parser = BoolishValueParser::new())]
    pub(crate) live_page: Option<bool>,
    /// Serve /v1/unfenced, which accepts every stale write, for all accounts, as a comparison; by
    /// default it only has the accounts of the story that the live page plays
    #[arg(long, env = "PALISADE_UNFENCED", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, value_name = "BOOL")]
    #[arg(
        default_value = "false",
        default_missing_value = "true",
        hide_default_value = true
    )]
    #[arg(value_parser = BoolishValueParser::new())]
    pub(crate) unfenced: bool,
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
    /// The story that the two clients play
    #[arg(long, value_enum, default_value_t)]
    pub(crate) story: Story,
    /// How many times to play both acts
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// The length of a lease, such as 1.5s or 800ms (100ms to 60s)
    #[arg(long, default_value = "1.5s", value_parser = ttl, value_name = "DURATION")]
    pub(crate) ttl: Duration,
    /// The least time for which client 1 is stopped [default: the ttl and 1 s]
    #[arg(long, value_parser = pause, value_name = "DURATION")]
    pub(crate) pause: Option<Duration>,
    /// Print one JSON object and nothing else on stdout; progress goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// The file for the picture of both acts, as SVG [default: a new file in the temporary folder;
    /// with --json: none]
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,
    /// The file for the recording, as JSON
    #[arg(long, value_name = "PATH")]
    pub(crate) record: Option<PathBuf>,
    /// Print only the verdicts, without progress and time line
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl ScenarioArgs {
    /// The least time for which client 1 is stopped.
    pub(crate) fn pause(&self) -> Duration {
        self.pause.unwrap_or(self.ttl + Duration::from_secs(1))
    }
}

fn ttl(text: &str) -> Result<Duration, String> {
    within(text, "100ms", "60s")
}

fn pause(text: &str) -> Result<Duration, String> {
    within(text, "0ms", "10m")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Catches: two options with the same name, or a default that is no value.
    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
