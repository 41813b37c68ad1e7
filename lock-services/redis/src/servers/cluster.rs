use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{Client, RedisResult, Value};

use super::{
    address::{Access, Address},
    connection::{Connection, Moves, Peer},
    fitness::field,
    key_layout::Layout,
    link::{Link, dial},
    service_url::ServiceUrl,
    single_flight::SingleFlight,
    slots::{Slot, Slots},
    turns::Turns,
};
use crate::error::translate;
use lock_core::{Error, ErrorKind, backend::support::lock};

/// The nodes of a cluster: one connection to each primary that is needed, and a map of the slots.
/// The map is made again when it turns out to be old.
#[derive(Debug)]
pub(super) struct Cluster {
    seeds: Vec<Address>,
    access: Access,
    layout: Layout,
    timeout: Duration,
    moves: Moves,
    /// The number of requests in turn that may be under way at each node.
    turns: usize,
    /// The turns of slots whose node is not known.
    turns_anywhere: Arc<Turns>,
    known: Mutex<Known>,
    /// The map that is being made.
    drawing: SingleFlight<Result<(), Error>>,
}

#[derive(Debug, Default)]
struct Known {
    slots: Slots,
    primaries: HashMap<Address, Arc<Connection>>,
    /// Whether a connection broke, so that its node may have lost its slots to another node.
    doubted: bool,
}

/// The cluster as one node sees it.
#[derive(Debug)]
struct View {
    /// Whether the node can serve, and the last change that it knows of. The greatest value is the
    /// newest view.
    age: (bool, u64),
    slots: Slots,
}

impl Cluster {
    pub(super) fn new(url: &ServiceUrl, layout: Layout, moves: Moves, turns: usize) -> Self {
        Self {
            seeds: url.addresses.clone(),
            access: url.servers.clone(),
            layout,
            timeout: url.response_timeout,
            moves,
            turns,
            turns_anywhere: Arc::new(Turns::new(turns)),
            known: Mutex::default(),
            drawing: SingleFlight::default(),
        }
    }

    /// The present connection to the primary of a slot, or a new one. If it fails, nothing of the
    /// operation was sent.
    pub(super) async fn link(self: &Arc<Self>, slot: Slot) -> Result<Link, Error> {
        let (owner, node) = self.primary(slot).await?;
        let error = match node.link().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => error,
            answer => return answer,
        };
        // Another node may have taken its place.
        self.ask_around().await?;
        let (successor, node) = self.primary(slot).await?;
        if successor == owner {
            return Err(error);
        }
        node.link().await
    }

    /// A connection to the node that is taking a slot over.
    pub(super) async fn link_to(&self, address: &Address) -> Result<Link, Error> {
        self.node(address)?.link().await
    }

    /// The client for the primary of a slot, for a caller that makes a connection of its own.
    pub(super) async fn locate(self: &Arc<Self>, slot: Slot) -> Result<Client, Error> {
        let (_, node) = self.primary(slot).await?;
        node.locate().await
    }

    /// Notes the node of a slot, from a redirection.
    pub(super) fn moved(&self, slot: Slot, owner: Address) {
        self.known().slots.moved(slot, owner);
        self.moves.notify();
    }

    /// Notes that a node may have failed. The next request for a slot asks all nodes first.
    pub(super) fn doubt(&self) {
        self.known().doubted = true;
    }

    /// Turns at the primary of a slot.
    pub(super) fn turns(&self, slot: Slot) -> Arc<Turns> {
        let known = self.known();
        let owner = known.slots.owner(slot);
        let node = owner.and_then(|owner| known.primaries.get(owner));
        node.map_or_else(|| Arc::clone(&self.turns_anywhere), |node| node.turns())
    }

    /// The address of the present connection to a slot's primary.
    pub(super) fn owner(&self, slot: Slot) -> Option<Address> {
        self.known().slots.owner(slot).cloned()
    }

    async fn primary(self: &Arc<Self>, slot: Slot) -> Result<(Address, Arc<Connection>), Error> {
        let owner = {
            let mut known = self.known();
            let doubted = std::mem::take(&mut known.doubted);
            known.slots.owner(slot).filter(|_| !doubted).cloned()
        };
        let owner = match owner {
            Some(owner) => owner,
            None => {
                self.ask_around().await?;
                self.owner(slot).ok_or_else(|| {
                    Error::not_applied(ErrorKind::Unavailable)
                        .because("no node of the cluster has the slot of this shard")
                })?
            }
        };
        let node = self.node(&owner)?;
        Ok((owner, node))
    }

    fn node(&self, address: &Address) -> Result<Arc<Connection>, Error> {
        let mut known = self.known();
        if let Some(node) = known.primaries.get(address) {
            return Ok(Arc::clone(node));
        }
        let client = self
            .access
            .client(address)
            .map_err(|error| translate(error).outcome_not_applied())?;
        let node = Connection::new(
            Peer::Node(client),
            self.layout.clone(),
            self.timeout,
            self.moves.clone(),
            self.turns,
        );
        let node = Arc::new(node);
        known.primaries.insert(address.clone(), Arc::clone(&node));
        Ok(node)
    }

    /// Makes the map again, once for all callers that wait for it.
    async fn ask_around(self: &Arc<Self>) -> Result<(), Error> {
        let drawing = self.drawing.join(|| {
            let cluster = Arc::clone(self);
            Box::pin(async move { cluster.draw_map().await })
        });
        drawing.await
    }

    /// Asks all nodes at once, and takes the newest view of the half that answers first. So a node
    /// that hangs delays no caller, and a node that was cut off does not decide.
    async fn draw_map(&self) -> Result<(), Error> {
        let nodes: BTreeSet<Address> = {
            let known = self.known();
            known
                .slots
                .nodes()
                .iter()
                .chain(&self.seeds)
                .cloned()
                .collect()
        };
        let mut answers: FuturesUnordered<_> = nodes.iter().map(|node| self.view(node)).collect();
        let mut views = Vec::new();
        let mut failure = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(view) => views.push(view),
                Err(error) => failure = Some(error),
            }
            if views.len() > nodes.len() / 2 {
                break;
            }
        }
        let Some(newest) = views.into_iter().max_by_key(|view| view.age) else {
            return Err(unheard(failure));
        };
        let mut known = self.known();
        known.slots = newest.slots;
        let Known {
            slots, primaries, ..
        } = &mut *known;
        primaries.retain(|address, _| slots.nodes().contains(address));
        drop(known);
        self.moves.notify();
        Ok(())
    }

    async fn view(&self, node: &Address) -> RedisResult<View> {
        let mut commands = dial(&self.access.client(node)?, self.timeout).await?;
        let map: Value = redis::cmd("CLUSTER")
            .arg("SLOTS")
            .query_async(&mut commands)
            .await?;
        // If the user may not ask this, all views count as equally new.
        let info: RedisResult<String> = redis::cmd("CLUSTER")
            .arg("INFO")
            .query_async(&mut commands)
            .await;
        Ok(View {
            age: info.map_or((false, 0), |info| age(&info)),
            slots: Slots::parse(map, node),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

fn age(info: &str) -> (bool, u64) {
    let epoch = field(info, "cluster_current_epoch").and_then(|epoch| epoch.parse().ok());
    (
        field(info, "cluster_state") == Some("ok"),
        epoch.unwrap_or(0),
    )
}

fn unheard(failure: Option<redis::RedisError>) -> Error {
    let Some(error) = failure else {
        return Error::not_applied(ErrorKind::Unavailable)
            .because("no node of the cluster is known");
    };
    if error
        .detail()
        .is_some_and(|detail| detail.contains("cluster support disabled"))
    {
        return Error::not_applied(ErrorKind::Refused)
            .because("this server is not part of a cluster: use redis://")
            .caused_by(error);
    }
    translate(error).outcome_not_applied()
}
