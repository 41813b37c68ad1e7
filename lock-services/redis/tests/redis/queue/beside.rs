//! The key of a lease exists as long as any other key of its resource, and its state says so,
//! because the fast paths look only at that key.

use lock_core::{
    Holder, ResourceName, Ttl,
    backend::{
        AcquireRequest, AttemptRef, Grant, LockBackend, LockBackendExt, RenewRequest, TokioRuntime,
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::queue::world::{Client, Waiter, World, again, request, sequencer, waiting};

const STEPS: usize = 400;
/// After this many steps two new resources are used, because tombstones stay.
const STEPS_OF_A_PAIR: usize = 20;
/// Some leases with this ttl run out during the test.
const SHORT: Ttl = Ttl::millis(60);
/// The greatest difference of the clock, in ms, between two commands of one script.
const ONE_SCRIPT: i64 = 5;

/// A client, with its leases and waiters.
struct Actor {
    client: Client,
    held: Vec<(AcquireRequest, Grant)>,
    waiters: Vec<(AcquireRequest, Waiter)>,
}

impl Actor {
    fn new(client: Client) -> Self {
        Self {
            client,
            held: Vec::new(),
            waiters: Vec::new(),
        }
    }

    fn asks_for(pair: &[String; 2], random: &mut StdRng) -> AcquireRequest {
        let resource = pair.choose(random).unwrap();
        let mut request = request(resource);
        if random.random_bool(0.4) {
            request.ttl = SHORT;
        }
        request
    }

    /// Takes one step, whatever its answer is.
    async fn act(&mut self, pair: &[String; 2], random: &mut StdRng) -> String {
        let which = random.random_range(0..100);
        match which {
            0..25 => {
                let request = Self::asks_for(pair, random);
                if let Ok(attempt) = self.client.0.acquire(&request).await
                    && let Some(grant) = attempt.granted()
                {
                    self.held.push((request, grant));
                }
                "look".to_owned()
            }
            25..45 => {
                let wanted = Self::asks_for(pair, random);
                let mut request = waiting(wanted.attempt.resource.as_str());
                request.ttl = wanted.ttl;
                let waiter = self.client.waits(&request);
                self.waiters.push((request, waiter));
                tokio::task::yield_now().await;
                "wait".to_owned()
            }
            45..70 if !self.held.is_empty() => {
                let (request, grant) = self.held.swap_remove(0);
                let tombstone = random.random_bool(0.3);
                let lease = sequencer(&request, grant);
                self.client.0.release(&lease, tombstone).await.unwrap();
                format!("release, tombstone: {tombstone}")
            }
            70..80 if !self.waiters.is_empty() => {
                let (request, waiter) = self.waiters.swap_remove(0);
                waiter.abort();
                self.client.0.cancel(&request.attempt).await.unwrap();
                "cancel".to_owned()
            }
            80..85 if !self.held.is_empty() => {
                let (request, grant) = self.held.swap_remove(0);
                let resource = &request.attempt.resource;
                let forced = self.client.0.force_release(resource, grant.token);
                forced.await.unwrap();
                "force".to_owned()
            }
            85..90 if !self.held.is_empty() => {
                let (request, grant) = &self.held[0];
                let renewal = RenewRequest::new(sequencer(request, *grant), request.ttl);
                self.client.0.renew(&[renewal]).await;
                "renew".to_owned()
            }
            90..95 => {
                let one = Holder::random();
                let both = pair.each_ref().map(|resource| {
                    let resource = ResourceName::new(resource.as_str()).unwrap();
                    AcquireRequest::new(AttemptRef::new(&TokioRuntime, resource, one), SHORT)
                });
                let together = self.client.0.acquire_together(&both).await;
                if let Some(grants) = together.unwrap().granted() {
                    self.held.extend(both.into_iter().zip(grants));
                }
                "together".to_owned()
            }
            _ if !self.held.is_empty() => {
                let (request, _) = &self.held[0];
                self.client.0.acquire(&again(request)).await.ok();
                "again".to_owned()
            }
            _ => {
                tokio::time::sleep(SHORT.get() / 2).await;
                "pause".to_owned()
            }
        }
    }

    /// Moves waiters that were granted to the holders.
    async fn collect(&mut self) {
        for (request, waiter) in std::mem::take(&mut self.waiters) {
            if !waiter.is_finished() {
                self.waiters.push((request, waiter));
            } else if let Ok(Ok(attempt)) = waiter.await
                && let Some(grant) = attempt.granted()
            {
                self.held.push((request, grant));
            }
        }
    }
}

/// The keys of one resource, read in one step.
#[derive(Debug)]
struct Seen {
    lease: Option<String>,
    /// The time to live of the key of the lease, in ms. -2 if there is no such key.
    ends: i64,
    /// The greatest time to live of the other keys.
    beside: i64,
}

async fn look(world: &World, resource: &str) -> Seen {
    let script = "local beside = -2
        for i = 2, #KEYS do beside = math.max(beside, redis.call('PEXPIRETIME', KEYS[i])) end
        return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), beside}";
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(4);
    for kind in ["lease", "queue", "suspended", "waiters"] {
        command.arg(world.key(&format!("{kind}:{resource}")));
    }
    let (lease, ends, beside) = world.run(&command).await;
    Seen {
        lease,
        ends,
        beside,
    }
}

impl Seen {
    /// Whether the fast paths would notice the other keys of the resource.
    fn is_sound(&self) -> bool {
        let alone = self.lease.as_deref().is_none_or(|it| it.contains(":f:"));
        self.beside < 0 || (!alone && self.ends + ONE_SCRIPT >= self.beside)
    }
}

/// Catches: a script that changes the queue or leaves a tombstone, but does not say so in the key
/// of the lease. Also a key of a lease that ends before the other keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_a_lease_says_what_is_beside_it_and_outlives_it() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let world = World::new().await;
    let mut actors = Vec::new();
    for _ in 0..2 {
        actors.push(Actor::new(world.listening_client().await));
    }
    actors.push(Actor::new(world.client().await));
    let (mut alone, mut crowded, mut vacant) = (0, 0, 0);
    for step in 0..STEPS {
        let number = random.random_range(0..actors.len());
        let round = step / STEPS_OF_A_PAIR;
        let pair = ["a", "b"].map(|name| format!("{name}:{round}"));
        let did = actors[number].act(&pair, &mut random).await;
        for resource in &pair {
            let seen = look(&world, resource).await;
            assert!(seen.is_sound(), "step {step}, {did}: {seen:?}");
            match seen.lease.as_deref() {
                Some("vacant") => vacant += 1,
                Some(_) if seen.beside > 0 => crowded += 1,
                _ => alone += 1,
            }
        }
        for actor in &mut actors {
            actor.collect().await;
        }
    }
    println!("{alone} alone, {crowded} with others, {vacant} vacant");
    assert!(
        alone.min(crowded).min(vacant) > 0,
        "hardly anything was seen"
    );
}
