use std::{sync::Arc, time::Duration};

use e2e::{
    observer::{Observer, until},
    proxy::{Fault, Proxy},
    servers::redis,
};
use lock_core::{
    Attempt, Error, FencingToken, Holder, InitialToken, Issuer, Released, ResourceName, Sequencer,
    Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, Grant, LockBackend, LockBackendExt,
        TokioRuntime, Upkeep, Wait,
    },
};
use palisade_redis::RedisBackend;
use tokio::task::JoinHandle;

/// A ttl that outlasts a test.
pub(crate) const LONG: Ttl = Ttl::secs(60);

/// The time limit for an event that has to come. Events are far quicker.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The index of the time of the last request in the text of a waiter's details.
const ASKED: usize = 4;

/// A prefix of its own on the shared server, with one shard.
pub(crate) struct World {
    prefix: String,
    initial: InitialToken,
    pub(crate) observer: Observer,
}

/// A client that looks like a process of its own to the server.
#[derive(Clone)]
pub(crate) struct Client(pub(crate) Arc<RedisBackend>);

/// A waiter in a task of its own.
pub(crate) type Waiter = JoinHandle<Result<Attempt<Grant>, Error>>;

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(InitialToken::Clock).await
    }

    /// A world whose tokens count from one.
    pub(crate) async fn counting() -> Self {
        Self::with(InitialToken::At(FencingToken::MIN)).await
    }

    async fn with(initial: InitialToken) -> Self {
        Self {
            initial,
            prefix: format!("t{:016x}", rand::random::<u64>()),
            observer: Observer::of(redis().await.url()).await,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_at(redis().await.url()).await
    }

    pub(crate) async fn client_at(&self, url: &str) -> Client {
        let options = ConnectOptions::from(url)
            .prefix(&self.prefix)
            .parameter("shards", "1")
            .initial_token(self.initial);
        let backend = RedisBackend::connect(options, Arc::new(TokioRuntime)).await;
        Client(Arc::new(backend.unwrap()))
    }

    /// A client that pushes already reach.
    pub(crate) async fn listening_client(&self) -> Client {
        let (client, rival) = (self.client().await, self.client().await);
        client.listen(&rival).await;
        client
    }

    /// The number of clients of this world that listen. The server has clients of other tests, too.
    pub(crate) async fn channels(&self) -> usize {
        let channels = self.observer.channels().await;
        let ours = |channel: &&String| channel.starts_with(&self.prefix);
        channels.iter().filter(ours).count()
    }

    /// Waits until an attempt is in the details of a waiter.
    pub(crate) async fn until_in_details(&self, request: &AcquireRequest) {
        let (key, attempt) = (self.key("waiters:*"), request.attempt.id.to_string());
        until("in line with others of its acquisition", async || {
            let mut found = false;
            for key in self.observer.keys(&key).await {
                found |= self
                    .observer
                    .values(&key)
                    .await
                    .iter()
                    .any(|value| value.contains(&attempt));
            }
            found
        })
        .await;
    }

    /// Makes a waiter look as if it had asked for the last time long ago.
    pub(crate) async fn age_details_of(&self, request: &AcquireRequest) {
        let client = redis::Client::open(redis().await.url()).unwrap();
        let mut commands = client.get_multiplexed_async_connection().await.unwrap();
        let AttemptRef {
            resource, holder, ..
        } = &request.attempt;
        let key = self.key(&format!("waiters:{resource}"));
        let mut look = redis::cmd("HGET");
        let look = look.arg(&key).arg(holder.digest());
        let details: String = look.query_async(&mut commands).await.unwrap();
        let mut fields: Vec<_> = details.split(':').collect();
        fields[ASKED] = "1";
        let mut write = redis::cmd("HSET");
        let write = write.arg(&key).arg(holder.digest()).arg(fields.join(":"));
        let () = write.query_async(&mut commands).await.unwrap();
    }

    /// The time at which a waiter asked last, by the server's clock in ms.
    pub(crate) async fn asked_at(&self, request: &AcquireRequest) -> u64 {
        let key = self.key(&format!("waiters:{}", request.attempt.resource));
        let details: String = self
            .run(
                redis::cmd("HGET")
                    .arg(key)
                    .arg(request.attempt.holder.digest()),
            )
            .await;
        let asked = details.split(':').nth(ASKED).unwrap();
        asked.parse().unwrap()
    }

    /// Makes the server publish a push as if it had granted the resource to this waiter.
    pub(crate) async fn push(&self, to: &AcquireRequest, token: u64, granted_at: u64) {
        let channels = self.key("grants:*");
        let channels: Vec<String> = self
            .run(redis::cmd("PUBSUB").arg("SHARDCHANNELS").arg(channels))
            .await;
        let AttemptRef {
            resource,
            holder,
            id,
            ..
        } = &to.attempt;
        let (digest, lease) = (holder.digest(), self.key(&format!("lease:{resource}")));
        let message = format!("{id}:{digest}:{token}:1000:{granted_at}:{lease}");
        assert_eq!(channels.len(), 1);
        let mut publish = redis::cmd("SPUBLISH");
        let publish = publish.arg(&channels[0]).arg(message);
        let received: u32 = self.run(publish).await;
        assert_eq!(received, 1);
    }

    /// Runs a command on the server, without a client of the lock service.
    pub(crate) async fn run<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let client = redis::Client::open(redis().await.url()).unwrap();
        let mut commands = client.get_multiplexed_async_connection().await.unwrap();
        command.query_async(&mut commands).await.unwrap()
    }

    /// Deletes the counter, as an operator who deletes an unknown key.
    pub(crate) async fn lose_counter(&self) {
        let deleted: u32 = self.run(redis::cmd("DEL").arg(self.key("counter"))).await;
        assert_eq!(deleted, 1);
    }

    pub(crate) fn key(&self, rest: &str) -> String {
        format!("{}:{{0}}:{rest}", self.prefix)
    }
}

/// A lease that was pushed to a client that gets the push, but cannot confirm it.
pub(crate) struct Unconfirmed {
    pub(crate) request: AcquireRequest,
    pub(crate) token: FencingToken,
    pub(crate) waiter: Waiter,
    _muted: Proxy,
}

impl Unconfirmed {
    /// Such a lease of the resource `r`, which the holder had before.
    pub(crate) async fn after(holder: &Client, world: &World) -> Self {
        let muted = Proxy::start(redis().await.url()).await;
        let client = world.client_at(&muted.url("redis")).await;
        client.listen(holder).await;
        let (held, first) = holder.holds("r").await;
        let request = waiting("r");
        let waiter = client.waits(&request);
        holder.until_waiting("r", 1).await;
        muted.inflict_on_new(Fault::HoldRequests);
        muted.inflict(Fault::HoldRequests);
        holder.release(&held, first).await;
        let token = holder
            .until_handed_on(&request.attempt.resource, first)
            .await;
        Self {
            request,
            token,
            waiter,
            _muted: muted,
        }
    }
}

impl Client {
    /// Acquires a resource that is free.
    pub(crate) async fn holds(&self, resource: &str) -> (AcquireRequest, Grant) {
        let request = request(resource);
        let grant = self.0.acquire(&request).await.unwrap().granted().unwrap();
        (request, grant)
    }

    /// Begins to wait.
    pub(crate) fn waits(&self, request: &AcquireRequest) -> Waiter {
        let (client, request) = (self.clone(), request.clone());
        tokio::spawn(async move { client.0.acquire(&request).await })
    }

    /// Makes pushes reach the client from here on. The client waits once, for a resource that the
    /// rival gives back.
    pub(crate) async fn listen(&self, rival: &Self) {
        let resource = format!("to:listen:{:016x}", rand::random::<u64>());
        let (held, grant) = rival.holds(&resource).await;
        let mut request = request(&resource);
        request.wait = Wait::Forever;
        let waiter = self.waits(&request);
        self.until_waiting(&resource, 1).await;
        rival.release(&held, grant).await;
        let grant = granted(waiter).await;
        self.release(&request, grant).await;
    }

    pub(crate) async fn release(&self, request: &AcquireRequest, grant: Grant) {
        let released = self
            .0
            .release(&sequencer(request, grant), true)
            .await
            .unwrap();
        assert_eq!(released, Released::Released);
    }

    /// Waits until the resource has another holder, to which it was pushed.
    pub(crate) async fn until_handed_on(
        &self,
        resource: &ResourceName,
        from: Grant,
    ) -> FencingToken {
        let handed_on = async || {
            let holder = self.0.inspect(resource).await.unwrap().holder;
            holder
                .map(|holder| holder.token)
                .filter(|token| *token > from.token)
        };
        until("handed on", async || handed_on().await.is_some()).await;
        handed_on().await.expect("it is held for a while")
    }

    pub(crate) async fn until_waiting(&self, resource: &str, many: u64) {
        let resource = ResourceName::new(resource).unwrap();
        until("in line", async || {
            let inspection = self.0.inspect(&resource).await.unwrap();
            inspection.waiters == Some(many)
        })
        .await;
    }
}

/// A request that does not wait.
pub(crate) fn request(resource: &str) -> AcquireRequest {
    let resource = ResourceName::new(resource).unwrap();
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, resource, Holder::random()),
        LONG,
    )
}

/// A request that waits for ever, and whose grant the test will confirm.
pub(crate) fn waiting(resource: &str) -> AcquireRequest {
    let mut request = request(resource);
    request.wait = Wait::Forever;
    request.upkeep = Upkeep::Watchdog;
    request
}

/// Another attempt of the same acquisition.
pub(crate) fn again(request: &AcquireRequest) -> AcquireRequest {
    let mut again = request.clone();
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    again.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), *holder);
    again
}

pub(crate) fn sequencer(request: &AcquireRequest, grant: Grant) -> Sequencer {
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    let issuer = Issuer::new("queue").unwrap();
    Sequencer::new(issuer, resource.clone(), grant.token, *holder)
}

/// The grant that a waiter gets in the end.
pub(crate) async fn granted(waiter: Waiter) -> Grant {
    let answer = tokio::time::timeout(SOON, waiter).await;
    let answer = answer.expect("it is pushed to this waiter").unwrap();
    answer.unwrap().granted().expect("it waits for ever")
}
