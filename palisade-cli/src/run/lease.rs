//! The lease of a run, from its acquisition to its end, with the messages to the command.

use std::{fmt, future::pending, pin::pin, sync::OnceLock, time::Duration};

use fenced_http::signed::SigningKey;
use fenced_jobs::{JobOutcome, Jobs, Schedule, Slot};
use fenced_store::{Dialect, FencedLockError, FencedLocks};
use lock_core::{
    Attempt, ErrorKind, InitialToken, LeaseGuard, LockManager, Released,
    backend::{Moment, Runtime, TokioRuntime},
};
use serde_json::json;
use tokio::{
    sync::{oneshot, watch},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use super::{
    boot_time::BootTime,
    command::Hold,
    environment,
    fate::{Exit, Fate},
    report::Report,
};
use crate::{
    address::Address,
    cli::RunArgs,
    database::{AnyStore, Tables},
    failure::{Failure, with_sources},
    open, signing,
};

/// The channel to the command, which gets at most one lease.
pub(super) type ForTheCommand = oneshot::Sender<Hold>;

/// The end of the request for a lease.
#[derive(Debug)]
pub(super) enum Finish {
    /// The command had its lease until it ended.
    Ran(Fate),
    /// The command need not run any more.
    Stopped,
    /// The lease ended before the command did.
    Lost(String),
    /// Another holder has the lease.
    Held { retry_after: Option<Duration> },
    /// The slot is done.
    Done(Slot),
    /// No time of the schedule has come yet.
    NothingDue,
    /// The slot has failed, and is not due again.
    BackingOff { slot: Slot, retry_in: Duration },
}

/// Acquires the lease, gives it to the command until the command has ended, and releases it.
///
/// # Errors
/// The same as in other commands, if the lock service or the store cannot be used.
///
/// # Cancel safety
/// The lease is released, or not acquired.
pub(super) async fn with_lease(
    args: &RunArgs,
    report: Report,
    command: ForTheCommand,
    stop: oneshot::Receiver<()>,
) -> Result<Finish, Failure> {
    let lock = lock_service(args)?;
    let run = Run {
        args,
        slot: slot(args)?,
        key: key(args)?,
        report,
        started: TokioRuntime.now(),
        acquired: OnceLock::new(),
    };
    if args.every.is_some() && run.slot.is_none() {
        return Ok(Finish::NothingDue);
    }
    let mut stop = pin!(async {
        if stop.await.is_err() {
            // The command has its lease.
            pending::<()>().await;
        }
    });
    let (locks, store) = tokio::select! {
        biased;
        connected = connect(args, lock) => connected?,
        () = &mut stop => return Ok(Finish::Stopped),
    };
    let finish = tokio::select! {
        biased;
        finish = run.with(&locks, store, args.store.as_ref() == Some(lock), command) => finish,
        () = &mut stop => Ok(Finish::Stopped),
    };
    if timeout(LEAVING, locks.shutdown()).await.is_err() {
        tracing::debug!("the lock service does not answer, so the lease ends by itself");
    }
    if let Some(told) = run.acquired.into_inner() {
        // The line comes before the next ones.
        let _panicked = told.await;
    }
    finish
}

/// The longest wait for the answer to a release. Without the release others only wait longer.
const LEAVING: Duration = Duration::from_secs(5);

async fn connect(
    args: &RunArgs,
    lock: &Address,
) -> Result<(LockManager, Option<AnyStore>), Failure> {
    let (issuer, initial_token) = (args.issuer.name.as_ref(), InitialToken::default());
    match &args.store {
        None => {
            let locks = open::lock_service("lock", lock, issuer, initial_token).await?;
            Ok((locks, None))
        }
        Some(store) => {
            let (locks, store) =
                open::both(lock, store, issuer, initial_token, Tables::OfStore).await?;
            Ok((locks, Some(store)))
        }
    }
}

/// The address of the lock service.
fn lock_service(args: &RunArgs) -> Result<&Address, Failure> {
    let database = args.store.as_ref().filter(|store| store.is_database());
    let lock = args.lock.as_ref().or(database).ok_or_else(|| {
        Failure::Usage("name the lock service with --lock, such as sqlite:/run/leases.db".into())
    })?;
    if lock.is_memory() {
        let why = "--lock memory: no other process could see the lease; for the processes of one \
                   host use sqlite:FILE";
        return Err(Failure::Usage(why.into()));
    }
    Ok(lock)
}

/// The slot of the command: the named one, or the newest time that is due.
fn slot(args: &RunArgs) -> Result<Option<Slot>, Failure> {
    let Some(pattern) = &args.every else {
        return Ok(args.once.clone());
    };
    let schedule = Schedule::new(pattern, &args.zone);
    let schedule = schedule.map_err(|error| Failure::Usage(format!("--every: {error}")))?;
    let now = jiff::Timestamp::UNIX_EPOCH + TokioRuntime.unix_time();
    Ok(schedule.newest(now).map(Slot::from))
}

/// The key that signs the header.
fn key(args: &RunArgs) -> Result<Option<SigningKey>, Failure> {
    let file = args.signing_keys.as_deref();
    file.map(|file| signing::signing_key(file, &args.audience))
        .transpose()
}

struct Run<'a> {
    args: &'a RunArgs,
    /// The slot, if the command is a job.
    slot: Option<Slot>,
    key: Option<SigningKey>,
    report: Report,
    started: Moment,
    /// The output of the line about the lease.
    acquired: OnceLock<JoinHandle<()>>,
}

impl Run<'_> {
    async fn with(
        &self,
        locks: &LockManager,
        store: Option<AnyStore>,
        is_one: bool,
        command: ForTheCommand,
    ) -> Result<Finish, Failure> {
        let locks = locks.clone();
        match store {
            None => self.with_lock_alone(&locks, command).await,
            Some(AnyStore::MySql(store)) => {
                self.with_store(open::pair(locks, store, is_one), command)
                    .await
            }
            Some(AnyStore::Postgres(store)) => {
                self.with_store(open::pair(locks, store, is_one), command)
                    .await
            }
            Some(AnyStore::Sqlite(store)) => {
                self.with_store(open::pair(locks, store, is_one), command)
                    .await
            }
        }
    }

    async fn with_lock_alone(
        &self,
        locks: &LockManager,
        command: ForTheCommand,
    ) -> Result<Finish, Failure> {
        let args = self.args;
        let acquire = locks.acquire(args.resource.clone()).ttl(args.ttl);
        let acquired = match args.wait.is_zero() {
            true => acquire.try_acquire().await,
            false => acquire.wait(args.wait).await.map(Attempt::Granted),
        };
        let guard = match acquired {
            Ok(Attempt::Granted(guard)) => guard,
            Ok(Attempt::Held { retry_after }) => return Ok(held(Some(retry_after))),
            Err(error) if error.kind() == ErrorKind::WaitTimeout => {
                return Ok(held(error.retry_after()));
            }
            Err(error) => return Err(failed(&error)),
        };
        let finish = self.held(&guard, command).await?;
        self.released(guard.release()).await;
        Ok(finish)
    }

    async fn with_store<DB: Dialect>(
        &self,
        locks: FencedLocks<DB>,
        command: ForTheCommand,
    ) -> Result<Finish, Failure> {
        let args = self.args;
        if let Some(slot) = &self.slot {
            return self.once(&locks, slot, command).await;
        }
        let acquire = locks.acquire(args.resource.clone()).ttl(args.ttl);
        let acquired = acquire.attempt(args.wait).await;
        let guard = match acquired.map_err(|error| failed(&error))? {
            Attempt::Granted(guard) => guard,
            Attempt::Held { retry_after } => return Ok(held(Some(retry_after))),
        };
        let finish = self.held(&guard, command).await?;
        self.released(guard.release()).await;
        Ok(finish)
    }

    /// Runs the command as a job: the slot is marked as done after the exit code 0.
    async fn once<DB: Dialect>(
        &self,
        locks: &FencedLocks<DB>,
        slot: &Slot,
        command: ForTheCommand,
    ) -> Result<Finish, Failure> {
        let resource = self.args.resource.as_str();
        let name = resource.strip_prefix("job:").unwrap_or(resource);
        let once = locks
            .once(name, slot)
            .ttl(self.args.ttl)
            .wait(self.args.wait);
        let mut seen = None;
        let (not_begun, was_not_begun) = oneshot::channel();
        let outcome = once.steps(async |job| {
            let finish = self.held(job.guard(), command).await;
            let finish = finish.map_err(NotDone::Failed)?;
            if matches!(finish, Finish::Ran(fate) if fate.was_not_begun()) {
                // The slot stays due. The caller drops this future, so no failure is noted.
                let _gone = not_begun.send(finish);
                return pending().await;
            }
            let is_done = matches!(finish, Finish::Ran(Fate::Ended(Exit::Code(0))));
            let why = NotDone::Finished(format!("{finish}"));
            seen = Some(finish);
            is_done.then_some(()).ok_or(why)
        });
        let outcome = tokio::select! {
            biased;
            outcome = outcome => outcome,
            Ok(finish) = was_not_begun => return Ok(finish),
        };
        match (seen, outcome) {
            (_, Err(NotDone::Failed(failure))) => Err(failure),
            (Some(finish), Err(NotDone::Finished(_)) | Ok(JobOutcome::Ran(..))) => Ok(finish),
            // The command itself has marked the slot as done.
            (Some(finish), Ok(JobOutcome::Done { .. })) => Ok(finish),
            (Some(_), Err(NotDone::Store(error))) => Ok(Finish::Lost(format!(
                "the slot is NOT marked as done: {}",
                with_sources(&error)
            ))),
            (None, Err(NotDone::Store(error))) if error.is_fenced() => {
                Ok(Finish::Lost(with_sources(&error)))
            }
            (None, Err(NotDone::Store(error))) => Err(failed(&error)),
            (_, Ok(JobOutcome::BackingOff { retry_in, .. })) => Ok(Finish::BackingOff {
                slot: slot.clone(),
                retry_in,
            }),
            (_, Ok(JobOutcome::Done { .. } | JobOutcome::Forgotten)) => {
                Ok(Finish::Done(slot.clone()))
            }
            _ => Ok(held(None)),
        }
    }

    /// Gives the lease to the command, and passes on renewals until the command has ended or the
    /// lease is lost.
    async fn held(&self, lease: &LeaseGuard, command: ForTheCommand) -> Result<Finish, Failure> {
        let environment =
            environment::of(lease.sequencer(), self.slot.as_ref(), self.key.as_ref())?;
        let runtime = lease.runtime();
        let mut deadline = match lease.deadline() {
            Ok(deadline) => deadline,
            Err(lost) => return Ok(Finish::Lost(lost.to_string())),
        };
        self.tell_acquired(lease);
        let (renewed, deadlines) = watch::channel(BootTime::of(deadline, runtime));
        let (ended, mut has_ended) = oneshot::channel();
        let hold = Hold {
            environment,
            deadlines,
            ended,
        };
        if command.send(hold).is_err() {
            // The command was stopped a moment ago.
            return Ok(Finish::Ran(Fate::Stopped(None)));
        }
        loop {
            tokio::select! {
                biased;
                fate = &mut has_ended => return Ok(Finish::Ran(fate.unwrap_or(Fate::NoLease))),
                known = lease.renewed_after(deadline) => match known {
                    Ok(known) => {
                        deadline = known;
                        renewed.send_replace(BootTime::of(deadline, runtime));
                    }
                    Err(lost) => return Ok(Finish::Lost(lost.to_string())),
                }
            }
        }
    }

    /// Writes a line, on a thread of its own because a reader that does not read must not delay the
    /// command, or its end.
    fn tell_acquired(&self, lease: &LeaseGuard) {
        let (resource, token) = (lease.resource(), lease.token());
        let waited = TokioRuntime.now().since(self.started);
        let event = json!({
            "resource": resource.as_str(), "token": token.get(),
            "waited_ms": palisade_gateway::wire::millis(waited),
        });
        let text = format!("\"{resource}\" is acquired after {waited:.1?}, with token {token}");
        let report = self.report;
        let told = spawn_blocking(move || report.step("acquired", event, &text));
        // A run has one lease.
        let _none = self.acquired.set(told);
    }

    async fn released(&self, release: impl Future<Output = Result<Released, lock_core::Error>>) {
        let why = match timeout(LEAVING, release).await {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the lock service does not answer".to_owned(),
        };
        let event = json!({ "error": why });
        let ttl = self.args.ttl.get();
        let text = format!("not released, so others wait for up to {ttl:?}: {why}");
        self.report.failure("not_released", event, &text);
    }
}

fn held(retry_after: Option<Duration>) -> Finish {
    Finish::Held { retry_after }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::ServerLost(with_sources(error))
}

/// The reason why a slot is not marked as done.
#[derive(Debug)]
enum NotDone {
    Finished(String),
    Failed(Failure),
    Store(FencedLockError),
}

impl From<FencedLockError> for NotDone {
    fn from(error: FencedLockError) -> Self {
        Self::Store(error)
    }
}

/// The text about the failure that the store notes.
impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished(why) => f.write_str(why),
            Self::Failed(failure) => failure.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran(Fate::Ended(Exit::Code(code))) => write!(f, "exit code {code}"),
            Self::Ran(Fate::Ended(Exit::Signal(signal))) => write!(f, "ended by signal {signal}"),
            Self::Ran(Fate::NoLease) => f.write_str("an error in palisade run"),
            Self::Ran(Fate::NotExecuted(_)) => f.write_str("the command cannot be executed"),
            _ => f.write_str("the command was ended, because the lease was lost"),
        }
    }
}
