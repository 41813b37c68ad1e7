use std::{sync::Arc, time::Duration};

use e2e::{
    history::{Event, History},
    ledger::Ledger,
    servers::Etcd,
};
use lock_core::{
    FencingToken, LockManager, ResourceName, Ttl,
    backend::{ConnectOptions, Runtime, TokioRuntime},
};
use palisade_etcd::EtcdBackend;

/// The time limit for steps that take seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A prefix that no other test has.
pub(crate) fn prefix() -> String {
    format!("t{:016x}", rand::random::<u64>())
}

pub(crate) fn named(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

/// A manager with connections of its own.
pub(crate) async fn manager(url: &str, prefix: &str) -> LockManager {
    palisade::connect(url).prefix(prefix).await.unwrap()
}

/// The lock service as a manager sees it.
pub(crate) async fn backend(url: &str, prefix: &str) -> EtcdBackend {
    let options = ConnectOptions::from(url).prefix(prefix);
    let connected = EtcdBackend::connect(options, Arc::new(TokioRuntime));
    connected.await.unwrap()
}

/// All keys with this prefix.
pub(crate) async fn keys(server: &Etcd, prefix: &str) -> Vec<String> {
    let listed = server
        .ctl(&["get", "--prefix", "--keys-only", prefix])
        .await;
    let lines = listed.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// The lease to which a key is attached.
pub(crate) async fn lease_of(server: &Etcd, key: &str) -> String {
    let found = server.ctl(&["get", "--write-out=json", key]).await;
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    format!("{:x}", found["kvs"][0]["lease"].as_i64().unwrap())
}

/// Sections that add to a ledger under a lock, and their results.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) ledger: Ledger,
    pub(crate) history: History,
}

impl Load {
    /// One section. Every eighth section sleeps past the end of its lease, which is not renewed.
    pub(crate) async fn section(&self, locks: &LockManager, number: u64, ttl: Ttl) -> bool {
        self.section_above(locks, number, ttl, None).await
    }

    /// As [`section`](Self::section), with a floor.
    pub(crate) async fn section_above(
        &self,
        locks: &LockManager,
        number: u64,
        ttl: Ttl,
        floor: Option<FencingToken>,
    ) -> bool {
        let sleepy = number.is_multiple_of(8);
        let asked = TokioRuntime.now();
        let mut acquire = locks.acquire("r").ttl(ttl).renew(!sleepy);
        if let Some(floor) = floor {
            acquire = acquire.at_least(floor);
        }
        let Ok(guard) = acquire.wait(PATIENCE).await else {
            return false;
        };
        assert!(floor.is_none_or(|floor| floor <= guard.token()));
        self.history
            .granted(Event::answered(guard.sequencer(), asked));
        let section = self.ledger.enter(&guard, &self.history).await;
        let work = if sleepy {
            2 * ttl.get() + Duration::from_secs(1)
        } else {
            Duration::from_millis(2)
        };
        tokio::time::sleep(work).await;
        let added = section.add(number).await;
        guard.release().await.ok();
        added
    }

    /// Checks the order and the uniqueness of the tokens, that no stale write was accepted, and
    /// that no update was lost. The control without a fence must have lost some.
    pub(crate) fn assert_sound(&self) {
        let (grants, accepted) = (self.history.grants(), self.ledger.accepted());
        let lost = self.ledger.lost_from_twin();
        println!("{grants} grants, {accepted} writes, {lost} lost without a fence");
        self.history.assert_sound();
        assert_eq!(self.ledger.lost(), 0);
        assert!(accepted > 0, "nothing was written");
        assert!(lost > 0, "the control has lost nothing");
    }
}

/// Runs sections one after the other until the test stops them.
pub(crate) fn sections(
    load: &Arc<Load>,
    locks: &LockManager,
    first: u64,
    ttl: Ttl,
    stop: &Arc<std::sync::atomic::AtomicBool>,
) -> tokio::task::JoinHandle<()> {
    let (load, locks, stop) = (Arc::clone(load), locks.clone(), Arc::clone(stop));
    tokio::spawn(async move {
        let mut number = first;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            load.section(&locks, number, ttl).await;
            number += 1;
        }
    })
}
