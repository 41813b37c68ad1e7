//! Replacing one lock service by another.

use fenced_store::{
    Dialect, FencedStore,
    admin::{AdminError, HandedOver, Handover, HandoverError, HandoverPlan, HandoverStep},
};
use lock_core::{ErrorKind, LockManager};
use serde_json::{Value, json};

use super::{
    consent,
    locks::connect,
    progress::Progress,
    store::{Operated, on_any, open},
    store_error,
};
use crate::{
    cli::MigrateArgs,
    console::Console,
    failure::{Failure, with_sources},
    interrupt::Interrupts,
};

/// Replaces one lock service by another, or says what that would do.
pub(crate) async fn migrate(args: MigrateArgs) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen().map_err(Failure::machine("listening for signals"))?;
    let work = run(&args);
    tokio::select! {
        biased;
        result = work => result,
        interrupt = interrupts.next() => Err(Failure::Stopped {
            interrupt,
            then: "completed steps stay; run it again to finish, or in the other direction to turn \
                   back",
        }),
    }
}

async fn run(args: &MigrateArgs) -> Result<(), Failure> {
    let to = connect("to", &args.to, args.to_issuer.as_ref()).await?;
    let order = order(args, &to)?;
    on_any!(open(&args.store.address).await?, store => carry_out(args, &order, store).await)
}

fn order(args: &MigrateArgs, to: &LockManager) -> Result<Handover, Failure> {
    let order = Handover::new(args.from_issuer.clone(), to, args.reason.clone());
    order.map_err(|error| {
        Failure::Usage(format!(
            "{error}, with --to-issuer, and have its clients use it"
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
        "{store_at} takes tokens of {to} from now on, and none of {from}. EVERYBODY WHO HOLDS A \
         LEASE OF {from} IS SHUT OUT.",
    );
    consent::ask(args.consent, what, to.as_str()).await?;
    let mut sealing = Progress::default();
    let tell = |step: HandoverStep<'_>| match step {
        HandoverStep::IssuerChanged => {
            Console::Stderr.line(format!("the store takes no claim of {from} any more"));
        }
        HandoverStep::Sealed(resource, many) => sealing.tell("marks sealed", resource, many),
        _ => {}
    };
    let done = store.admin().hand_over(order, tell).await.map_err(failed)?;
    Console::Stdout.line(match args.json {
        true => done_as_json(order, &done).to_string(),
        false => done_in_words(order, &done),
    });
    Ok(())
}

fn planned_as_json(order: &Handover, plan: &HandoverPlan) -> Value {
    json!({
        "dry_run": true,
        "from": order.from(),
        "to": order.to(),
        "issuer": plan.issuer,
        "marks": plan.marks,
        "floor": plan.floor,
    })
}

fn planned_in_words(order: &Handover, plan: &HandoverPlan) -> String {
    let issuer = plan.issuer.as_ref();
    let issuer = issuer.map_or_else(|| "no lock service yet".to_owned(), ToString::to_string);
    format!(
        "the store takes tokens of {issuer}\nmarks that would be sealed: {}\nthey would take \
         tokens of {} from about {} up\nnothing was changed",
        plan.marks,
        order.to(),
        plan.floor,
    )
}

fn done_as_json(order: &Handover, done: &HandedOver) -> Value {
    json!({
        "from": order.from(),
        "to": order.to(),
        "floor": done.floor,
        "sealed": done.sealed,
    })
}

fn done_in_words(order: &Handover, done: &HandedOver) -> String {
    format!(
        "the store takes tokens of \"{}\"; marks sealed: {}, which take tokens from {} up\nstop \
         the clients of {}: it goes on granting leases, but the store accepts none of them",
        order.to(),
        done.sealed,
        done.floor,
        order.from(),
    )
}

/// Includes the source of the error, which says what to do.
fn failed(error: HandoverError) -> Failure {
    let (done, told) = (error.to_string(), with_sources(&error));
    match error {
        HandoverError::SameIssuer => Failure::Usage(told),
        HandoverError::New { source, .. }
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
        } => store_error::half_way(&done, &store),
        _ => Failure::NotAsTold(told),
    }
}
