//! Commands that show jobs, and that let a slot run again.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fenced_jobs::{JobSlot, JobSlots, Jobs as _, SlotState, Standing};
use fenced_store::{Dialect, FencedLockError, FencedLocks, FencedStore};
use lock_core::{
    ErrorKind, LockManager,
    backend::{Runtime, TokioRuntime},
};
use palisade_gateway::wire::millis;
use serde_json::{Value, json};

use super::{
    consent, locks,
    store::{Operated, on_any, open},
    store_error,
};
use crate::{
    cli::{ForgetArgs, Jobs, JobsOf, Place},
    console::Console,
    duration::seconds,
    failure::Failure,
};

/// How long to wait for the process that runs the job.
const WAIT: Duration = Duration::from_secs(30);

/// The number of slots that one query reads.
const PAGE: u32 = 500;

pub(crate) async fn jobs(command: Jobs) -> Result<(), Failure> {
    match command {
        Jobs::List { store, job, json } => {
            let slots = on_any!(open(&store.address).await?, store => all(&store).await?);
            let is_its = |slot: &&JobSlot| job.as_ref().is_none_or(|job| *job == slot.job);
            list(slots.iter().filter(is_its).collect(), json);
            Ok(())
        }
        Jobs::Show { store, place, json } => {
            let Place { job, slot } = &place;
            let state = on_any!(open(&store.address).await?, store => {
                store.job_slot(job, slot).await.map_err(|error| failed(&error))?
            });
            Console::Stdout.line(match json {
                true => as_json(job, slot.as_str(), &state).to_string(),
                false => in_words(job, slot.as_str(), &state),
            });
            Ok(())
        }
        Jobs::Retry { of, place, json } => {
            let Place { job, slot } = &place;
            let was_due = on_any!(open(&of.store.address).await?, store => {
                let jobs = FencedLocks::new(lock_service(&of).await?, store);
                jobs.retry_job(job, slot, WAIT).await.map_err(|error| failed(&error))?
            });
            if !was_due {
                let why = format!("{job} {slot} has not failed: nothing was changed");
                return Err(Failure::NotAsTold(why));
            }
            Console::Stdout.line(match json {
                true => json!({ "job": job, "slot": slot.as_str(), "due": true }).to_string(),
                false => format!("{job} {slot} is due now"),
            });
            Ok(())
        }
        Jobs::Forget(args) => forget(args).await,
    }
}

async fn forget(args: ForgetArgs) -> Result<(), Failure> {
    let job = &args.job;
    let what = match (&args.slot, &args.below) {
        (Some(slot), _) => format!("{job} CAN RUN AGAIN for {slot}, even if it is done."),
        (None, Some(time)) => format!("All times of {job} before {time} count as done for ever."),
        (None, None) => return Err(Failure::Usage("name a slot, or --below".to_owned())),
    };
    consent::ask(args.consent, what, job).await?;
    let said = on_any!(open(&args.of.store.address).await?, store => {
        let jobs = FencedLocks::new(lock_service(&args.of).await?, store);
        match (&args.slot, &args.below) {
            (Some(slot), _) => {
                let forgotten = jobs.forget_job(job, slot, WAIT).await;
                if !forgotten.map_err(|error| failed(&error))? {
                    let why = format!("the store does not know {job} {slot}");
                    return Err(Failure::NotAsTold(why));
                }
                let told = format!("{job} {slot} can run again");
                (json!({ "job": job, "slot": slot.as_str() }), told)
            }
            (None, asked) => {
                let asked = asked.as_ref().map_or("", |asked| asked.as_str());
                let below = jobs.forget_jobs_below(job, asked, WAIT).await;
                let below = below.map_err(|error| failed(&error))?;
                if below.is_empty() {
                    return Err(Failure::NotAsTold(format!("no time of {job} is done")));
                }
                let state = jobs.store().job_slot(job, below.as_str()).await;
                let state = state.map_err(|error| failed(&error))?;
                forgotten(job, asked, &below, &state)
            }
        }
    });
    Console::Stdout.line(match args.json {
        true => said.0.to_string(),
        false => said.1,
    });
    Ok(())
}

/// The text about the forgotten times. If fewer times are forgotten than requested, the text names
/// the time at which the forgetting stopped.
fn forgotten(job: &str, asked: &str, below: &str, state: &SlotState) -> (Value, String) {
    let stopped_by = match state.standing {
        _ if below >= asked => None,
        Standing::Done { .. } => Some(("newest_done", "is the newest that is done")),
        _ => Some(("not_done", "is not done")),
    };
    let told =
        json!({ "job": job, "below": below, "stopped_by": stopped_by.map(|(code, _)| code) });
    let stopped = stopped_by.map(|(_, why)| format!(", and no later ones: {below} {why}"));
    let stopped = stopped.unwrap_or_default();
    (
        told,
        format!("the times of {job} before {below} are forgotten{stopped}"),
    )
}

async fn lock_service(of: &JobsOf) -> Result<LockManager, Failure> {
    let store = &of.store.address;
    let database = Some(store).filter(|store| store.is_database_server());
    let Some(address) = of.lock.as_ref().or(database) else {
        let why = "name with --lock the lock service of the programs that run the job";
        return Err(Failure::Usage(why.to_owned()));
    };
    locks::connect("lock", address, of.issuer.name.as_ref()).await
}

async fn all<DB: Dialect>(store: &FencedStore<DB>) -> Result<Vec<JobSlot>, Failure> {
    let (mut all, mut seen) = (Vec::<JobSlot>::new(), HashSet::new());
    loop {
        let page = store.job_slots(all.last(), PAGE).await;
        let page = page.map_err(|error| store_error::of_store(&error))?;
        let known = all.len();
        let place = |slot: &JobSlot| (slot.job.clone(), slot.slot.clone());
        all.extend(page.into_iter().filter(|slot| seen.insert(place(slot))));
        // Names that this program has not written may have another order in the database.
        if all.len() == known {
            return Ok(all);
        }
    }
}

fn list(slots: Vec<&JobSlot>, json: bool) {
    if json {
        let slots = slots.iter();
        let slots = slots.map(|slot| as_json(&slot.job, &slot.slot, &slot.state));
        Console::Stdout.line(json!({ "slots": slots.collect::<Vec<_>>() }));
        return;
    }
    for slot in &slots {
        Console::Stdout.line(in_words(&slot.job, &slot.slot, &slot.state));
    }
    if slots.is_empty() {
        Console::Stdout.line("no job has run");
    }
}

fn as_json(job: &str, slot: &str, state: &SlotState) -> Value {
    let (name, token, at, retry_in) = match state.standing {
        Standing::Done { token, at } => ("done", Some(token.get()), Some(since_1970(at)), None),
        Standing::Forgotten => ("forgotten", None, None, None),
        Standing::BackingOff(retry_in) => ("backing_off", None, None, Some(millis(retry_in))),
        _ => ("due", None, None, None),
    };
    json!({
        "job": job, "slot": slot, "state": name, "token": token, "done_at_ms": at,
        "steps": state.steps, "progress": state.progress, "failures": state.attempts,
        "last_error": state.last_error, "retry_in_ms": retry_in,
    })
}

fn in_words(job: &str, slot: &str, state: &SlotState) -> String {
    let standing = match state.standing {
        Standing::Done { token, at } => {
            let ago = TokioRuntime.unix_time().as_millis();
            let ago = ago.saturating_sub(u128::from(since_1970(at)));
            let ago = seconds(u64::try_from(ago).unwrap_or(u64::MAX));
            format!("done {ago} ago under token {token}")
        }
        Standing::Forgotten => "forgotten, and counts as done".to_owned(),
        Standing::BackingOff(left) => format!("due again in {}", seconds(millis(left))),
        _ => "not done".to_owned(),
    };
    let steps = Some(state.steps).filter(|steps| *steps > 0);
    let steps = steps.map(|steps| format!(", {steps} steps committed"));
    let error = state.last_error.as_ref();
    let failed = error.map(|error| format!(", failed {} times: {}", state.attempts, line(error)));
    let (steps, failed) = (steps.unwrap_or_default(), failed.unwrap_or_default());
    format!("{} {}: {standing}{steps}{failed}", line(job), line(slot))
}

/// A text that others may have written, as a part of one line, without control characters that
/// could move the cursor.
fn line(text: &str) -> String {
    let shown = |character: char| match character {
        '"' | '\'' | '\\' => format!("{character}"),
        other => other.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

fn since_1970(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn failed(error: &FencedLockError) -> Failure {
    match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::WaitTimeout => {
            let why = format!("another process is running the job, try again: {error}");
            Failure::NotAsTold(why)
        }
        FencedLockError::Lock(error) if error.kind() == ErrorKind::InvalidInput => {
            Failure::Usage(error.to_string())
        }
        FencedLockError::Lock(error) => Failure::ServerLost(error.to_string()),
        FencedLockError::Store(error) => store_error::of_store(error),
        error => Failure::ServerLost(error.to_string()),
    }
}
