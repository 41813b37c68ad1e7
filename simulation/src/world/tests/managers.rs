//! The shipped client in three processes.

use lock_core::{
    Capabilities, Error, Inspection, LockManager, Released, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, RenewRequest, Renewed, Reply, Request, Requests,
        Runtime, Wake,
    },
    memory::MemoryBackend,
};

use super::*;
use crate::world::{Process, Stream};

/// The lock service in memory, as a process sees it over a network.
#[derive(Debug)]
struct Distant {
    service: MemoryBackend,
    process: Process,
}

struct Travelling<'a, R> {
    requests: R,
    to: &'a Distant,
}

impl Distant {
    async fn travel(&self) {
        let random = u64::try_from(self.process.random() >> 64).unwrap_or(0);
        let delay = Duration::from_micros(random % 3000);
        (&self.process as &dyn Runtime).sleep(delay).await;
        self.process.delivered();
    }

    async fn asked<T>(&self, request: impl Future<Output = T>) -> T {
        self.travel().await;
        let answer = request.await;
        self.travel().await;
        answer
    }
}

impl<R: Requests> Requests for Travelling<'_, R> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        self.to.asked(self.requests.send(request)).await
    }

    async fn woken(&self) -> Wake {
        self.requests.woken().await
    }
}

impl LockBackend for Distant {
    fn kind(&self) -> &'static str {
        self.service.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.service.capabilities()
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(self.process.clone())
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        let requests = self.service.requests(request);
        Travelling { requests, to: self }
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.asked(self.service.renew(leases)).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.asked(self.service.release(lease, tombstone)).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.asked(self.service.cancel(attempt)).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.asked(self.service.inspect(resource)).await
    }
}

/// Sections of a client: an acquire that it may give up, then a release or a drop.
async fn sections(locks: LockManager, process: Process, mut choices: Stream) {
    for _ in 0..10 {
        let runtime: &dyn Runtime = &process;
        let acquire = locks.acquire("account").ttl(Ttl::millis(200));
        let patience = choices.between(ms(1), ms(400));
        let Some(acquired) = runtime.timeout(patience, acquire.into_future()).await else {
            process.tell(|| "gives up".into());
            continue;
        };
        let guard = acquired.unwrap();
        process.note(guard.token().get());
        process.tell(|| format!("holds {}", guard.token()));
        runtime.sleep(choices.between(ms(0), ms(30))).await;
        if choices.chance(0.5) {
            assert_eq!(guard.release().await.unwrap(), Released::Released);
        } else {
            drop(guard);
        }
    }
}

/// A run, what it granted, and what it left.
fn run(seed: u64, order: Order) -> (u64, World) {
    let world = World::new(seed, order).unwrap();
    let server = world.process("server");
    let service = MemoryBackend::new(Arc::new(server), lock_core::InitialToken::default());
    for number in 0..3 {
        let process = world.process(["a", "b", "c"][number]);
        let (service, choices) = (service.clone(), Stream::new(seed, number as u64));
        let own = process.clone();
        process.start(async move {
            let process = own.clone();
            let backend = Distant { service, process };
            let locks = LockManager::builder().build(backend).unwrap();
            sections(locks, own, choices).await;
        });
    }
    runs_dry(&world);
    (world.digest(), world)
}

/// Catches: a part of the shipped client that no seed repeats, and clean-up that has no end.
#[test]
fn two_hundred_seeds_repeat_their_runs() {
    let mut digests = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let order = match seed % 3 {
            0 => Order::Uniform,
            1 => Order::Pct { depth: 3 },
            _ => Order::Fifo,
        };
        let (digest, world) = run(seed, order);
        assert_eq!(run(seed, order).0, digest, "seed {seed}");
        assert_eq!(world.panics(), [], "seed {seed}");
        assert_eq!(
            (world.counts().tasks, world.counts().sleepers),
            (0, 0),
            "seed {seed}"
        );
        digests.insert(digest);
    }
    assert_eq!(digests.len(), 200);
}
