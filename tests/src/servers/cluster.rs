use std::{ops::RangeInclusive, time::Duration};

use redis::RedisResult;
use tokio::time::sleep;

use super::{Redis, Replicated, until};
use crate::port;

/// All slots, in three parts.
const SLOTS: [RangeInclusive<u16>; 3] = [0..=5460, 5461..=10922, 10923..=16383];

/// A Redis Cluster: three primaries, with or without a replica each.
#[derive(Debug)]
pub struct RedisCluster {
    primaries: Vec<Redis>,
    replicas: Vec<Redis>,
}

impl RedisCluster {
    /// Starts three primaries and no replica.
    ///
    /// # Panics
    /// If one cannot be started, or they do not form a cluster.
    pub async fn start() -> Self {
        Self::start_nodes(0, &[]).await
    }

    /// Starts three primaries, each with a replica that takes over within seconds, and with
    /// arguments for all of them.
    ///
    /// # Panics
    /// If one cannot be started, or they do not form a cluster.
    pub async fn start_with_replicas(arguments: &[&str]) -> Self {
        Self::start_nodes(SLOTS.len(), arguments).await
    }

    async fn start_nodes(replicas: usize, arguments: &[&str]) -> Self {
        let cluster = [
            ["--cluster-enabled", "yes"],
            ["--cluster-node-timeout", "1000"],
            // A replica that was cut off takes over nevertheless.
            ["--cluster-replica-validity-factor", "0"],
            ["--repl-diskless-sync-delay", "0"],
        ];
        let arguments = [&cluster.concat(), arguments].concat();
        let (mut nodes, mut buses) = (Vec::new(), Vec::new());
        for _ in 0..SLOTS.len() + replicas {
            // By default the port of the bus is greater by 10 000, in the range of outgoing
            // connections.
            let bus = port::free().expect("a free port").to_string();
            let arguments = [&arguments[..], &["--cluster-port", &bus]].concat();
            nodes.push(Redis::start_with(&arguments).await);
            buses.push(bus);
        }
        let replicas = nodes.split_off(SLOTS.len());
        let cluster = Self {
            primaries: nodes,
            replicas,
        };
        cluster.introduce(&buses).await;
        cluster.replicate().await;
        cluster
    }

    /// `redis+cluster://..`, with all initial nodes.
    pub fn url(&self) -> String {
        let nodes: Vec<_> = self.nodes().map(Redis::address).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// The nodes that were primaries at the start.
    pub fn primaries(&self) -> &[Redis] {
        &self.primaries
    }

    /// The nodes that were replicas at the start.
    pub fn replicas(&self) -> &[Redis] {
        &self.replicas
    }

    /// The node that has a key at the start, by its number, and its replica.
    ///
    /// # Panics
    /// If no node answers.
    pub async fn owner(&self, key: &str) -> (usize, Replicated<'_>) {
        let slot: u16 = self.primaries[0]
            .command(&["CLUSTER", "KEYSLOT", key])
            .await;
        let owner = SLOTS.iter().position(|slots| slots.contains(&slot));
        let owner = owner.unwrap_or_else(|| panic!("no node has slot {slot}"));
        let replicas = self.replicas.get(owner..=owner).unwrap_or_default();
        (owner, Replicated::new(&self.primaries[owner], replicas))
    }

    /// Waits until the cluster serves all slots, according to all of these nodes.
    ///
    /// # Panics
    /// If that takes longer than 60 s.
    pub async fn until_ok(&self, nodes: &[&Redis]) {
        until("the cluster serves all slots", || async {
            for node in nodes {
                if !is_ok(node).await {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// Moves the slot of a key to another primary, as an operator does when rebalancing. It stops
    /// for `pause` when half of the keys have moved, and again when all keys have moved but not the
    /// slot. Returns the number of the slot.
    ///
    /// # Panics
    /// If a node refuses.
    pub async fn move_slot(&self, key: &str, to: &Redis, pause: Duration) -> String {
        let slot = self.begin_to_move_slot(key, to).await;
        let (_, group) = self.owner(key).await;
        let from = group.primary();
        let to_id: String = to.command(&["CLUSTER", "MYID"]).await;
        let count: usize = from.command(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).await;
        let key_by_key = ["CLUSTER", "GETKEYSINSLOT", &slot, "1"];
        for moved in 0.. {
            let keys: Vec<String> = from.command(&key_by_key).await;
            let Some(key) = keys.first() else { break };
            if moved == count / 2 {
                sleep(pause).await;
            }
            let () = from
                .command(&["MIGRATE", "127.0.0.1", to.port(), key, "0", "5000"])
                .await;
        }
        sleep(pause).await;
        for node in [to, from] {
            let () = node
                .command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id])
                .await;
        }
        slot
    }

    /// Marks the slot of a key as moving to another primary. Returns the slot. No key has moved
    /// yet. `CLUSTER SETSLOT .. STABLE` at both primaries ends the move.
    ///
    /// # Panics
    /// If a node does not answer.
    pub async fn begin_to_move_slot(&self, key: &str, to: &Redis) -> String {
        let (_, group) = self.owner(key).await;
        let from = group.primary();
        let slot: u16 = from.command(&["CLUSTER", "KEYSLOT", key]).await;
        let slot = slot.to_string();
        let (from_id, to_id): (String, String) = (
            from.command(&["CLUSTER", "MYID"]).await,
            to.command(&["CLUSTER", "MYID"]).await,
        );
        let () = to
            .command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])
            .await;
        let () = from
            .command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])
            .await;
        slot
    }

    fn nodes(&self) -> impl Iterator<Item = &Redis> {
        self.primaries.iter().chain(&self.replicas)
    }

    /// Distributes the slots and introduces every node to every other.
    async fn introduce(&self, buses: &[String]) {
        for (epoch, node) in self.nodes().enumerate() {
            let epoch = (epoch + 1).to_string();
            let () = node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
        }
        for node in self.nodes() {
            for (other, bus) in self.nodes().zip(buses) {
                let () = node
                    .command(&["CLUSTER", "MEET", "127.0.0.1", other.port(), bus])
                    .await;
            }
        }
        for (node, slots) in self.primaries.iter().zip(SLOTS) {
            let (first, last) = (slots.start().to_string(), slots.end().to_string());
            let () = node
                .command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])
                .await;
        }
        let all: Vec<&Redis> = self.nodes().collect();
        self.until_ok(&all).await;
    }

    async fn replicate(&self) {
        for (replica, primary) in self.replicas.iter().zip(&self.primaries) {
            let id: String = primary.command(&["CLUSTER", "MYID"]).await;
            until("the replica has heard of its primary", || async {
                let done: RedisResult<()> =
                    replica.try_command(&["CLUSTER", "REPLICATE", &id]).await;
                done.is_ok()
            })
            .await;
        }
        for replica in &self.replicas {
            until("the replica is in step", || async {
                let info: String = replica.command(&["INFO", "replication"]).await;
                info.contains("master_link_status:up")
            })
            .await;
        }
        // A failover needs the votes of primaries that know which primary the replica belongs to.
        for primary in &self.primaries {
            until("every primary knows all replicas", || async {
                let nodes: String = primary.command(&["CLUSTER", "NODES"]).await;
                nodes.lines().filter(|node| node.contains("slave")).count() == self.replicas.len()
            })
            .await;
        }
    }
}

async fn is_ok(node: &Redis) -> bool {
    let info: RedisResult<String> = node.try_command(&["CLUSTER", "INFO"]).await;
    info.is_ok_and(|info| info.contains("cluster_state:ok"))
}
