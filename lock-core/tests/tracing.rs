//! The output for a subscriber: spans and events, and no secret.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fmt,
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    ErrorKind, Holder, InitialToken, LeaseGuard, LockManager, LostReason, Operation, Ttl,
    backend::{Runtime, TokioRuntime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock};
use tracing::{
    Level, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};
use tracing_subscriber::{Layer, layer::Context, prelude::*, registry::LookupSpan};

const TTL: Ttl = Ttl::secs(9);

type Fields = BTreeMap<&'static str, String>;

/// One event or closed span. The `message` of an event and the name of a span are among the fields.
#[derive(Clone, Debug)]
struct Seen {
    level: Level,
    fields: Fields,
    /// The fields of the span in which the event happened.
    within: Fields,
}

/// A subscriber that remembers events and spans.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Seen>>>);

struct Read<'a>(&'a mut Fields);

impl Visit for Read<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0
            .insert(field.name(), format!("{value:?}").replace('"', ""));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Memory {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, cx: Context<'_, S>) {
        let mut fields = Fields::from([("name", attributes.metadata().name().to_owned())]);
        attributes.record(&mut Read(&mut fields));
        cx.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        values.record(&mut Read(
            span.extensions_mut().get_mut::<Fields>().unwrap(),
        ));
    }

    fn on_event(&self, event: &tracing::Event<'_>, cx: Context<'_, S>) {
        let mut fields = Fields::new();
        event.record(&mut Read(&mut fields));
        let within = cx.event_span(event).and_then(|span| {
            let extensions = span.extensions();
            extensions.get::<Fields>().cloned()
        });
        self.0.lock().unwrap().push(Seen {
            level: *event.metadata().level(),
            fields,
            within: within.unwrap_or_default(),
        });
    }
}

impl Memory {
    fn events(&self, message: &str) -> Vec<Seen> {
        let seen = self.0.lock().unwrap();
        let found = seen.iter().filter(|seen| seen.fields["message"] == message);
        found.cloned().collect()
    }

    fn event(&self, message: &str) -> Seen {
        let found = self.events(message);
        assert_eq!(found.len(), 1, "{message}: {:?}", self.0.lock().unwrap());
        found[0].clone()
    }
}

struct World {
    clock: ManualClock,
    chaos: Chaos,
    locks: LockManager,
    told: Memory,
    _subscribed: DefaultGuard,
}

fn world() -> World {
    let told = Memory::default();
    let subscriber = tracing_subscriber::registry().with(told.clone());
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let chaos = Chaos::new(Arc::new(service), Arc::clone(&timer));
    let builder = LockManager::builder();
    World {
        locks: builder.build(chaos.clone()).unwrap(),
        clock,
        chaos,
        told,
        _subscribed: subscriber.set_default(),
    }
}

impl World {
    async fn acquire(&self) -> LeaseGuard {
        self.locks.acquire("account:42").ttl(TTL).await.unwrap()
    }

    async fn after(&self, time: Duration) {
        for advance in [time, Duration::ZERO] {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            self.clock.advance(advance);
        }
    }
}

/// Catches: a span without its token, or a span at another level.
#[tokio::test]
async fn an_acquisition_is_a_span_with_its_resource_and_token() {
    let world = world();
    let guard = world.acquire().await;
    let granted = world.told.event("granted").within;
    for (field, value) in [
        ("name", "acquire"),
        ("resource", "account:42"),
        ("backend", "memory"),
        ("holder", &guard.sequencer().holder().fingerprint()),
        ("token", &guard.token().to_string()),
        ("waited", "0ns"),
    ] {
        assert_eq!(granted[field], value);
    }
    let attempt = world.locks.try_acquire("account:42").await.unwrap();
    assert!(attempt.granted().is_none());
    let held = world.told.event("held by another");
    assert_eq!((held.level, held.within.get("token")), (Level::DEBUG, None));
}

/// Catches: a loss that is not logged at the usual level.
#[tokio::test]
async fn renewals_and_releases_are_debug_events_and_a_loss_is_a_warning() {
    let world = world();
    let guard = world.acquire().await;
    let token = guard.token().to_string();
    world.after(TTL.get() / 3).await;
    assert_eq!(world.told.event("renewing").fields["leases"], "1");
    assert_eq!(world.told.event("renewals answered").level, Level::DEBUG);
    guard.release().await.unwrap();
    assert_eq!(world.told.event("released").fields["token"], token);
    assert!(world.told.events("lease lost").is_empty());

    let guard = world.acquire().await;
    world.chaos.always(Operation::Renew, Fault::DropRequest);
    world.after(TTL.get()).await;
    let lost = world.told.event("lease lost");
    assert_eq!(lost.level, Level::WARN);
    for (field, value) in [
        ("resource", "account:42"),
        ("reason", "expired"),
        ("holder", &guard.sequencer().holder().fingerprint()),
        ("token", &guard.token().to_string()),
    ] {
        assert_eq!(lost.fields[field], value);
    }
}

/// The warning names the other causes, because a user would find no call of `shutdown`.
#[test]
fn a_manager_whose_runtime_has_ended_says_so() {
    const SAYS: &str = "the watchdog has ended without a shutdown: its runtime has ended, or the \
                        lock service's implementation panicked; from now on every acquire of its \
                        manager fails";
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let first = runtime();
    let (world, guard) = first.block_on(async {
        let world = world();
        let guard = world.acquire().await;
        let service = MemoryBackend::new(Arc::new(TokioRuntime), InitialToken::Clock);
        let shut_down = LockManager::builder().build(service).unwrap();
        shut_down.shutdown().await;
        (world, guard)
    });
    drop(first);
    let ended = world.told.event(SAYS);
    assert_eq!(ended.level, Level::WARN);
    assert_eq!(ended.fields["backend"], "memory");
    assert_eq!(ended.fields["panicked"], "false");
    let lost = guard.remaining().unwrap_err();
    assert_eq!(lost.reason(), LostReason::ShutDown);
    let error = runtime().block_on(world.locks.acquire("other").into_future());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::ShutDown);
}

/// Catches: a log line with which anybody can release the lease.
#[tokio::test]
async fn no_span_or_event_shows_a_holder() {
    let world = world();
    let holder = Holder::random();
    for fault in [Fault::Pass, Fault::DropRequest, Fault::DropReply] {
        for operation in [Operation::Acquire, Operation::Renew, Operation::Release] {
            world.chaos.next(operation, fault.clone());
            let acquire = world.locks.acquire("account:42").ttl(TTL).holder(holder);
            let guard = acquire.try_acquire().await;
            world.after(TTL.get()).await;
            drop(guard);
        }
    }
    let everything = format!("{:?}", world.told.0.lock().unwrap());
    assert!(everything.contains(&holder.fingerprint()));
    assert!(!everything.contains(&holder.expose()));
}
