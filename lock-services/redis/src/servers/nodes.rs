use std::{collections::HashMap, sync::Arc, time::Duration};

use redis::{
    Client, ErrorKind as RedisKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind, Value,
};
use tokio::sync::watch;

use super::{
    address::Address,
    cluster::Cluster,
    connection::{Connection, Moves, Peer},
    key_layout::Layout,
    link::{Link, Request, breaks_connection},
    sentinel::Sentinels,
    service_url::{ServiceUrl, Topology},
    slots::Slot,
    turns::Turns,
};
use crate::error::translate;
use lock_core::{Error, RetryPolicy, backend::Runtime};

/// The pauses between the tries of a command that no server runs.
const PAUSES: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(5)).longest(Duration::from_millis(100));

/// The number of redirections that are followed without a pause. If a cluster sends more, its slots
/// are just changing.
const REDIRECTIONS: u32 = 5;

/// The servers of a lock service, and which of them has a shard. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Nodes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    servers: Servers,
    topology: Topology,
    moves: Moves,
    layout: Layout,
    runtime: Arc<dyn Runtime>,
    /// The time for which a command is tried again after a server has not run it.
    patience: Duration,
    /// The slot of each shard.
    slots: Box<[Slot]>,
}

#[derive(Debug)]
enum Servers {
    /// One primary has all shards.
    One(Connection),
    Many(Arc<Cluster>),
}

/// The reason why the server has not run a command.
enum NotRun {
    /// Another node has the slot. The node was noted.
    Moved,
    /// Another node is taking the slot over, and has these keys already.
    Ask(Address),
    /// No server can run it at the moment.
    Later,
}

impl Nodes {
    /// Connects, and agrees with the other clients on the layout of keys. At each server at most
    /// `turns` requests that are sent in [turn](Self::turns) are under way at once.
    pub(crate) async fn open(
        url: &ServiceUrl,
        layout: Layout,
        turns: usize,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let nodes = Self::new(url, layout, turns, runtime)?;
        nodes.agree().await?;
        Ok(nodes)
    }

    /// Connects at the first request, and agrees on the layout then.
    pub(crate) fn new(
        url: &ServiceUrl,
        layout: Layout,
        turns: usize,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let timeout = url.response_timeout;
        let topology = url.topology;
        let moves = Moves::default();
        let one = |peer| {
            Servers::One(Connection::new(
                peer,
                layout.clone(),
                timeout,
                moves.clone(),
                turns,
            ))
        };
        let servers = match topology {
            Topology::Standalone | Topology::Independent => {
                let client = url.servers.client(&url.addresses[0]);
                one(Peer::Server(client.map_err(translate)?))
            }
            Topology::Sentinel => one(Peer::Primary(Box::new(Sentinels::new(url)))),
            Topology::Cluster => Servers::Many(Arc::new(Cluster::new(
                url,
                layout.clone(),
                moves.clone(),
                turns,
            ))),
        };
        Ok(Self(Arc::new(Inner {
            servers,
            topology,
            moves,
            // The number is the hash tag of all keys of the shard.
            slots: (0..layout.shards)
                .map(|shard| Slot::of(&shard.to_string()))
                .collect(),
            layout,
            runtime,
            patience: timeout,
        })))
    }

    /// Runs a script on the server that has the shard, and reads its answer. All keys of the script
    /// have to be of that shard, unless shards share scripts.
    ///
    /// The script is sent again if the server says that it did not run it, for example because the
    /// shard has moved to another server. It is never sent again if its outcome is unknown.
    pub(crate) async fn run<T>(
        &self,
        shard: u16,
        script: &impl Request,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let (_, answer) = self.run_with(shard, |_| script, parse).await?;
        Ok(answer)
    }

    /// As [`run`](Self::run), but fails at once if no server can run it at the moment.
    pub(crate) async fn run_at_once<T>(
        &self,
        shard: u16,
        script: &impl Request,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let slot = self.slot_of(shard);
        let (_, answer) = self.send(slot, |_| script, parse, Duration::ZERO).await?;
        Ok(answer)
    }

    /// As [`run`](Self::run), with a script whose arguments depend on the connection on which it is
    /// sent. Returns that connection with the answer.
    pub(crate) async fn run_with<T, S: Request>(
        &self,
        shard: u16,
        script: impl Fn(&Link) -> S,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<(Link, T), Error> {
        let patience = self.0.patience;
        self.send(self.slot_of(shard), script, parse, patience)
            .await
    }

    /// The present connection to the server that has the shard, or a new one. If it fails, nothing
    /// was sent.
    pub(crate) async fn link_of(&self, shard: u16) -> Result<Link, Error> {
        self.link(self.slot_of(shard), None).await
    }

    /// Turns at the server that has the shard, as far as it is known. A request to another server
    /// does not wait for these turns.
    pub(crate) fn turns(&self, shard: u16) -> Arc<Turns> {
        match &self.0.servers {
            Servers::One(server) => server.turns(),
            Servers::Many(cluster) => cluster.turns(self.slot_of(shard)),
        }
    }

    /// Whether the keys of one script may be of several shards.
    pub(crate) fn shards_share_scripts(&self) -> bool {
        self.0.topology != Topology::Cluster
    }

    /// All keys that match a pattern, some of them more than once. Looks at `step` keys at a time.
    pub(crate) async fn scan(&self, pattern: &str, step: usize) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for mut link in self.links().await? {
            let scanned = scan(&mut link, pattern, step).await;
            found.extend(scanned.map_err(|error| translate(error).outcome_not_applied())?);
        }
        Ok(found)
    }

    /// A connection to every server that has a shard.
    async fn links(&self) -> Result<Vec<Link>, Error> {
        let cluster = match &self.0.servers {
            Servers::One(server) => return Ok(vec![server.link().await?]),
            Servers::Many(cluster) => cluster,
        };
        let mut links = HashMap::new();
        for shard in 0..self.0.layout.shards {
            let link = cluster.link(self.slot_of(shard)).await?;
            if let Some(owner) = cluster.owner(self.slot_of(shard)) {
                links.entry(owner).or_insert(link);
            }
        }
        Ok(links.into_values().collect())
    }

    /// Compares the layout of keys again.
    pub(crate) async fn agree(&self) -> Result<(), Error> {
        let layout = &self.0.layout;
        let parse = |answer| Ok(Option::<String>::from_redis_value(answer)?);
        let offer = |_: &Link| layout.offer();
        let slot = Slot::of(layout.key());
        let (_, stored) = self
            .send(slot, offer, parse, self.0.patience)
            .await
            .map_err(Error::outcome_not_applied)?;
        layout.compare(stored.as_deref())
    }

    /// The client for the server that has the shard now, for a caller that makes a connection of
    /// its own.
    pub(crate) async fn locate(&self, shard: u16) -> Result<Client, Error> {
        match &self.0.servers {
            Servers::One(server) => server.locate().await,
            Servers::Many(cluster) => cluster.locate(self.slot_of(shard)).await,
        }
    }

    /// Takes note of an error that a caller got from the server of a shard on a connection of its
    /// own.
    pub(crate) fn learn(&self, shard: u16, error: &RedisError) {
        // This is called only because it takes notes. Nothing is sent again here.
        drop(self.0.not_run(error, self.slot_of(shard), None));
    }

    /// Changes whenever a shard may have moved to another server.
    pub(crate) fn moves(&self) -> watch::Receiver<()> {
        self.0.moves.subscribe()
    }

    /// Whether the commands of a shard go to the server at an address, as far as is known.
    pub(crate) fn serves(&self, shard: u16, address: &str) -> bool {
        let known = match &self.0.servers {
            Servers::One(server) => server.address(),
            Servers::Many(cluster) => cluster
                .owner(self.slot_of(shard))
                .map(|owner| owner.to_string()),
        };
        known.is_none_or(|known| known == address)
    }

    /// Sends to the server that has a slot, until one of them has run it.
    async fn send<T, R: Request>(
        &self,
        slot: Slot,
        request: impl Fn(&Link) -> R,
        parse: impl FnOnce(Value) -> RedisResult<T>,
        patience: Duration,
    ) -> Result<(Link, T), Error> {
        let runtime = &*self.0.runtime;
        let mut give_up = None;
        let mut pauses = PAUSES.pauses();
        let mut redirections = 0;
        let mut asked = None;
        loop {
            let mut link = self.link(slot, asked.as_ref()).await?;
            let request = request(&link);
            let error = match link.send(&request).await {
                Ok(answer) => {
                    let answer = link.read(answer, parse);
                    return answer.map(|answer| (link, answer)).map_err(translate);
                }
                Err(error) => error,
            };
            let Some(not_run) = self.0.not_run(&error, slot, asked.take()) else {
                return Err(translate(error));
            };
            let give_up = *give_up.get_or_insert_with(|| runtime.now() + patience);
            redirections += 1;
            match not_run {
                NotRun::Moved if redirections < REDIRECTIONS => continue,
                NotRun::Ask(node) if redirections < REDIRECTIONS => {
                    asked = Some(node);
                    continue;
                }
                _ => {}
            }
            let pause = pauses.next(runtime);
            let Some(pause) = pause.filter(|pause| runtime.now() + *pause < give_up) else {
                return Err(translate(error));
            };
            runtime.sleep(pause).await;
        }
    }

    fn slot_of(&self, shard: u16) -> Slot {
        self.0.slots[usize::from(shard)]
    }

    async fn link(&self, slot: Slot, asked: Option<&Address>) -> Result<Link, Error> {
        match (&self.0.servers, asked) {
            (Servers::One(server), _) => server.link().await,
            (Servers::Many(cluster), None) => cluster.link(slot).await,
            (Servers::Many(cluster), Some(node)) => Ok(cluster.link_to(node).await?.asking()),
        }
    }
}

impl Inner {
    /// The step after an error, if it says that the command was not run and that this passes.
    fn not_run(&self, error: &RedisError, slot: Slot, asked: Option<Address>) -> Option<NotRun> {
        let cluster = match &self.servers {
            Servers::Many(cluster) => cluster,
            Servers::One(_) => {
                let demoted = error.kind() == RedisKind::Server(ServerErrorKind::ReadOnly);
                return (demoted && self.topology == Topology::Sentinel).then_some(NotRun::Later);
            }
        };
        let redirection = || {
            let answering = asked.or_else(|| cluster.owner(slot))?;
            Address::parse(error.redirect_node()?.0, &answering)
        };
        match error.kind() {
            RedisKind::Server(ServerErrorKind::Moved) => match redirection() {
                Some(owner) => {
                    cluster.moved(slot, owner);
                    Some(NotRun::Moved)
                }
                None => {
                    cluster.doubt();
                    Some(NotRun::Later)
                }
            },
            RedisKind::Server(ServerErrorKind::Ask) => {
                Some(redirection().map_or(NotRun::Later, NotRun::Ask))
            }
            RedisKind::Server(ServerErrorKind::TryAgain) => Some(NotRun::Later),
            RedisKind::Server(ServerErrorKind::ClusterDown | ServerErrorKind::ReadOnly) => {
                cluster.doubt();
                Some(NotRun::Later)
            }
            _ => {
                if breaks_connection(error) {
                    cluster.doubt();
                }
                None
            }
        }
    }
}

async fn scan(link: &mut Link, pattern: &str, step: usize) -> RedisResult<Vec<String>> {
    let mut found = Vec::new();
    let mut cursor = 0_u64;
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(pattern);
        command.arg("COUNT").arg(step);
        let answer = link.send(&command).await?;
        let (next, keys) = link.read(answer, |answer| {
            Ok(<(u64, Vec<String>)>::from_redis_value(answer)?)
        })?;
        found.extend(keys);
        if next == 0 {
            return Ok(found);
        }
        cursor = next;
    }
}
