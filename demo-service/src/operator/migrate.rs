//! Replacing one lock service by another.

use fenced_store::{
    Dialect, FencedStore,
    admin::{AdminError, HandedOver, Handover, HandoverError, HandoverPlan, HandoverStep, Lifted},
};
use lock_core::{ErrorKind, LockManager, Standing};
use serde_json::{Value, json};

use super::{
    consent,
    locks::connect,
    progress::Progress,
    store::{Operated, on_any, open},
    trouble::{self, with_sources},
};
use crate::{cli::MigrateArgs, console::Console, failure::Failure, interrupt::Interrupts};

/// Replaces one lock service by another, or says what that would do.
pub(crate) async fn migrate(args: MigrateArgs) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen().map_err(Failure::machine("listening for signals"))?;
    let work = run(&args);
    tokio::select! {
        result = work => result,
        interrupt = interrupts.next() => Err(Failure::Stopped {
            interrupt,
            then: "what was done stays; run it again to finish, or the other way round to turn \
                   back",
        }),
    }
}

async fn run(args: &MigrateArgs) -> Result<(), Failure> {
    let to = connect("to", &args.to, args.to_issuer.as_ref()).await?;
    let from = match &args.from {
        Some(from) => Some(connect("from", from, args.from_issuer.as_ref()).await?),
        None => None,
    };
    let order = order(args, from.as_ref(), &to)?;
    on_any!(open(&args.store.address).await?, store => carry_out(args, &order, store).await)
}

fn order(
    args: &MigrateArgs,
    from: Option<&LockManager>,
    to: &LockManager,
) -> Result<Handover, Failure> {
    let reason = args.reason.clone();
    let order = match (from, &args.from_issuer) {
        (Some(from), _) => Handover::new(from, to, reason),
        (None, Some(issuer)) => Handover::from_lost(issuer.clone(), to, reason),
        (None, None) => return Err(Failure::Usage("name --from or --from-issuer".to_owned())),
    };
    order.map_err(|error| {
        Failure::Usage(format!(
            "{error}, with --from-issuer or --to-issuer, and have its clients use it"
        ))
    })
}

async fn carry_out<DB: Dialect>(
    args: &MigrateArgs,
    order: &Handover,
    store: FencedStore<DB>,
) -> Result<(), Failure> {
    let plan = store.admin().plan_handover(order).await.map_err(failed)?;
    if args.dry_run {
        Console::Stdout.line(match args.json {
            true => planned_as_json(order, &plan).to_string(),
            false => planned_in_words(order, &plan),
        });
        return Ok(());
    }
    let (from, to, store_at) = (order.from(), order.to(), &args.store.address);
    let what = format!(
        "{store_at} takes tokens of {to} from now on, from {floor} up, and {from} grants no more. \
         EVERYBODY WHO HOLDS A LEASE OF {from} IS SHUT OUT.",
        floor = plan.floor,
    );
    consent::ask(args.consent, what, to.as_str()).await?;
    let (mut lifting, mut sealing) = (Progress::default(), Progress::default());
    let tell = |step: HandoverStep<'_>| match step {
        HandoverStep::Lifted(resource, many) => lifting.tell("resources lifted", resource, many),
        HandoverStep::Sealed(resource, many) => sealing.tell("marks sealed", resource, many),
        step => {
            if let Some(line) = line(order, step) {
                Console::Stderr.line(line);
            }
        }
    };
    let done = store.admin().hand_over(order, tell).await.map_err(failed)?;
    Console::Stdout.line(match args.json {
        true => done_as_json(order, &done).to_string(),
        false => done_in_words(order, &done),
    });
    Ok(())
}

fn line(order: &Handover, step: HandoverStep<'_>) -> Option<String> {
    let (from, to) = (order.from(), order.to());
    match step {
        HandoverStep::Retired(Some(Standing { last, .. })) => {
            let last = last.map(|last| format!(", its last token is {last}"));
            Some(format!("{from} is retired{}", last.unwrap_or_default()))
        }
        HandoverStep::Retired(None) => Some(cannot_be_retired(order)),
        HandoverStep::Floor(floor) => Some(format!("{to} is to begin at {floor}")),
        HandoverStep::InService => Some(format!("{to} is in service")),
        _ => None,
    }
}

fn cannot_be_retired(order: &Handover) -> String {
    format!(
        "{} cannot be retired: it goes on granting leases, of which the store takes none; stop \
         its clients",
        order.from()
    )
}

fn planned_as_json(order: &Handover, plan: &HandoverPlan) -> Value {
    json!({
        "dry_run": true,
        "from": order.from(),
        "to": order.to(),
        "issuer": plan.issuer,
        "marks": plan.marks,
        "old": plan.old.map(standing_as_json),
        "new": plan.new.map(standing_as_json),
        "floor": plan.floor,
    })
}

fn standing_as_json(standing: Standing) -> Value {
    json!({ "retired": standing.retired, "last": standing.last })
}

fn planned_in_words(order: &Handover, plan: &HandoverPlan) -> String {
    let (from, to) = (order.from(), order.to());
    let issuer = plan.issuer.as_ref();
    let issuer = issuer.map_or_else(|| "nobody yet".to_owned(), ToString::to_string);
    let old = match plan.old {
        Some(Standing { retired: true, .. }) => format!("{from} is retired already"),
        Some(_) => format!("{from} would be retired"),
        None => cannot_be_retired(order),
    };
    let new = match plan.new {
        Some(_) => format!("{to} would begin at {}", plan.floor),
        None => format!(
            "{to} would be lifted to {}, one resource after the other",
            plan.floor
        ),
    };
    format!(
        "the store takes tokens of {issuer}\n{old}\n{new}\nmarks that would be sealed: {}\n\
         nothing was changed",
        plan.marks,
    )
}

fn done_as_json(order: &Handover, done: &HandedOver) -> Value {
    let lifted = match done.lifted {
        Lifted::Resources { lifted, held } => json!({ "resources": lifted, "held": held }),
        _ => json!("service"),
    };
    json!({
        "from": order.from(),
        "to": order.to(),
        "floor": done.floor,
        "retired": done.retired,
        "lifted": lifted,
        "sealed": done.sealed,
    })
}

fn done_in_words(order: &Handover, done: &HandedOver) -> String {
    let (from, to) = (order.from(), order.to());
    let old = match done.retired {
        true => format!("{from} is retired"),
        false => cannot_be_retired(order),
    };
    let held = match done.lifted {
        Lifted::Resources { held, .. } if held > 0 => {
            format!("; somebody held {held} of its resources, which were not lifted")
        }
        _ => String::new(),
    };
    format!(
        "the store takes tokens of \"{to}\", from {} up; marks sealed: {}{held}\n{old}",
        done.floor, done.sealed,
    )
}

/// Includes the source of the error, which says what to do about it.
fn failed(error: HandoverError) -> Failure {
    let told = with_sources(&error);
    match error {
        HandoverError::SameIssuer => Failure::Usage(told),
        HandoverError::Old { source, .. } | HandoverError::New { source, .. }
            if !matches!(
                source.kind(),
                ErrorKind::FloorImplausible | ErrorKind::InvalidInput
            ) =>
        {
            Failure::ServerLost(told)
        }
        HandoverError::Store {
            source: AdminError::Store(store),
            ..
        } => match trouble::of_store(&store) {
            Failure::ServerLost(_) => Failure::ServerLost(told),
            _ => Failure::Refused(told),
        },
        _ => Failure::NotAsTold(told),
    }
}
