use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use fenced_http::signed::Audience;
use fenced_jobs::Slot;
use lock_core::{ResourceName, Ttl};

use super::{IssuerName, secret::secrets};
use crate::{address::Address, duration::within};

/// The sections of the help about the environment, slots, signals and exit codes.
pub(super) const NOTES: &str = concat!(
    "\
Examples:
  palisade run --resource backup --lock sqlite:/run/lock/leases.db -- backup.sh
      as flock does, for the processes of one host, but with a token
  palisade run --resource nightly --every '0 2 * * *' --zone Europe/Vienna \\
      --store postgres://me@db/app -- report.sh
      each minute in the crontab of several hosts: one of them runs it, once for each time

The command's environment:
  FENCING_TOKEN, FENCING_RESOURCE, FENCING_HOLDER, FENCING_ISSUER
      for a psql session, as arguments: SELECT fenced.begin_fenced(resource, token, holder, issuer).
      The holder is a secret: anybody who knows it can write as the command
  FENCING_SLOT
      the slot, with --once and --every
  FENCING_HEADER
      a whole header for a service that checks tokens: curl --header \"$FENCING_HEADER\" ..

Slots:
  With --once or --every the command is a job: it gets the lease of job:RESOURCE, and after exit
  code 0 the slot is marked as done, under the fence. So the slot is run at least once. It is run
  exactly once if the command itself marks the slot in the transaction that writes its result: with
  SELECT fenced.run_job(job, slot) on Postgres. A slot that has failed is due again after a pause,
  which grows from 1 s to 5 min; `palisade jobs` shows slots and changes them.

The end of the lease:
  Before the lease ends, by the clock of this host, the process group of the command gets SIGTERM,
  and SIGKILL after the time of --grace. This holds if one of our two processes is killed or
  stopped, because each watches the other. It does NOT hold if both are stopped, if the machine is
  suspended, for a process that leaves the group (if there is no cgroup for the command), for a
  process that becomes another user's (sudo), or for a process that does not die because a device
  does not answer. The token makes such a process harmless if its writes are fenced. Processes of
  the group that outlive the command are ended, too.

Signals:
  INT, TERM, HUP, QUIT, USR1, USR2, ALRM, TSTP and CONT are passed on to the command's group.
  Before the command is started, the first four end the wait.

",
    secrets!(),
    "

Exit codes:
  the code of the command, or 128 and the number of the signal that ended it; otherwise
  2    the arguments are wrong
  69   the lock service or the store cannot be reached, refuses us, or lacks our tables
  75   another holder has the lease, and --wait is over; or the failed slot is not due again yet
  124  the lease was lost, and the command was ended; or its slot is not marked as done
  125  a process cannot be started or watched on this machine
  126  the command cannot be executed          127  there is no such command
  130  interrupted by Ctrl-C while it waited (143: by SIGTERM, 129: by SIGHUP, 131: by SIGQUIT)"
);

/// Arguments for running a command under a lease.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("job").args(["once", "every"]))]
pub(crate) struct RunArgs {
    /// The resource that only this command may use, such as `nightly`
    #[arg(long, value_name = "NAME")]
    pub(crate) resource: ResourceName,
    /// Lock service: a URL as for `palisade serve`, but not `memory:`, which other processes cannot
    /// see [default: the store]
    #[arg(id = "lock", long = "lock", value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    pub(crate) lock: Option<Address>,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
    /// Store: `sqlite:FILE`, `postgres://[user[:password]@]HOST[:PORT]/DATABASE`, or the same with
    /// `mysql` or `mariadb`. The token is claimed there before the command starts, so that all
    /// earlier holders are shut out
    #[arg(id = "store", long = "store", value_name = "URL")]
    #[arg(env = "PALISADE_STORE", hide_env_values = true)]
    pub(crate) store: Option<Address>,
    /// How long the lease lasts without a renewal (1s to 24h); if this host dies, others wait for
    /// this time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = ttl)]
    pub(crate) ttl: Ttl,
    /// How long to wait while another holder has the lease
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = wait)]
    pub(crate) wait: Duration,
    /// How long the command may take to end between SIGTERM and SIGKILL; at most a third of the ttl
    /// [default: 5s, or a sixth of the ttl if that is less]
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    grace: Option<Duration>,
    /// Run the command as a job, once for this slot, such as `2026-11-27` or `invoice:4711`; needs
    /// a store
    #[arg(long, value_name = "SLOT", requires = "store")]
    pub(crate) once: Option<Slot>,
    /// Run the command as a job, for the newest due time of this pattern of cron; needs a store
    #[arg(long, value_name = "CRON", requires = "store")]
    pub(crate) every: Option<String>,
    /// The time zone of the pattern
    #[arg(long, value_name = "ZONE", default_value = "UTC", requires = "every")]
    pub(crate) zone: String,
    /// File of keys as for `palisade serve`: the first one signs FENCING_HEADER
    #[arg(long, value_name = "FILE", env = "PALISADE_SIGNING_KEYS")]
    pub(crate) signing_keys: Option<PathBuf>,
    /// The service for which the header is signed
    #[arg(
        long,
        value_name = "NAME",
        env = "PALISADE_AUDIENCE",
        default_value = "palisade"
    )]
    pub(crate) audience: Audience,
    /// Print each step on stderr, one JSON object per line
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) json: bool,
    /// Print each step on stderr
    #[arg(long)]
    pub(crate) verbose: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[cfg(target_os = "linux")]
impl RunArgs {
    /// How long the command may take to end between the two signals.
    ///
    /// # Errors
    /// A description of the mistake, for the command line to print.
    pub(crate) fn grace(&self) -> Result<Duration, String> {
        let most = self.ttl.get() / 3;
        match self.grace {
            None => Ok(std::cmp::min(Duration::from_secs(5), self.ttl.get() / 6)),
            Some(grace) if grace <= most => Ok(grace),
            Some(_) => Err(format!(
                "--grace: choose at most a third of the ttl, {most:?}, because the lease has to be \
                 renewed before the grace begins"
            )),
        }
    }
}

fn ttl(text: &str) -> Result<Ttl, String> {
    let ttl = within(text, "1s", "24h")?;
    Ttl::new(ttl).map_err(|error| error.to_string())
}

fn wait(text: &str) -> Result<Duration, String> {
    within(text, "0s", "100000h")
}
