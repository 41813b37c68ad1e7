use clap::{Args, Subcommand};
use fenced_jobs::Slot;

use super::operator::{Consent, IssuerName, OperatedStore};
use crate::address::Address;

/// Commands about jobs that run once per slot.
#[derive(Debug, Subcommand)]
pub(crate) enum Jobs {
    /// List the slots that are done, in progress or failed.
    List {
        #[command(flatten)]
        store: OperatedStore,
        /// Only the slots of this job
        job: Option<String>,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Show the state of a slot.
    Show {
        #[command(flatten)]
        store: OperatedStore,
        #[command(flatten)]
        place: Place,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Make a failed slot due at once.
    ///
    /// Waits until no process runs the job, for 30 s at most. Exit code 1 if the slot has not
    /// failed.
    Retry {
        #[command(flatten)]
        of: JobsOf,
        #[command(flatten)]
        place: Place,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Forget a slot, so that it CAN RUN AGAIN; or, with --below, the old markers of a schedule,
    /// which then count as done permanently.
    ///
    /// Waits until no process runs the job, for 30 s at most. Exit code 1 if the store does not
    /// know the slot.
    Forget(ForgetArgs),
}

/// A slot of a job.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// The name of the job
    pub(crate) job: String,
    /// The slot: a time such as `2026-11-27T02:00:00Z`, or the text that the program uses
    pub(crate) slot: Slot,
}

/// The store of the jobs, and the lock service of their leases.
#[derive(Args, Debug)]
pub(crate) struct JobsOf {
    #[command(flatten)]
    pub(crate) store: OperatedStore,
    /// Lock service of the programs that run the job: a URL as for `list`
    /// [default: the store, if that is a Postgres]
    #[arg(id = "lock", long = "lock", value_name = "URL")]
    #[arg(env = "PALISADE_LOCK", hide_env_values = true)]
    pub(crate) lock: Option<Address>,
    #[command(flatten)]
    pub(crate) issuer: IssuerName,
}

/// Arguments for forgetting.
#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    pub(crate) of: JobsOf,
    /// The name of the job
    pub(crate) job: String,
    /// The slot
    #[arg(required_unless_present = "below")]
    pub(crate) slot: Option<Slot>,
    /// All done times of the schedule before this one
    #[arg(long, value_name = "TIME", conflicts_with = "slot")]
    pub(crate) below: Option<Slot>,
    #[command(flatten)]
    pub(crate) consent: Consent,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
