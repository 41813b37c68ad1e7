use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fenced_store::memory::{Answer, Call, Wire};
use lock_core::backend::{BoxFuture, Runtime};

use super::Watch;
use crate::{edge::EDGE, schedule::Weather, service::Leg, world::Process};

/// How long a client takes to notice that its connection is broken.
const NOTICES: Duration = Duration::from_secs(1);

/// The way of one client to the store. Each message is a task of the network, so that it arrives
/// although its sender has gone.
pub(crate) struct StoreWire {
    client: u32,
    network: Process,
    weather: Arc<Weather>,
    watch: Arc<Watch>,
    messages: AtomicU64,
}

impl StoreWire {
    pub(crate) fn new(
        client: u32,
        network: &Process,
        weather: &Arc<Weather>,
        watch: &Arc<Watch>,
    ) -> Self {
        Self {
            client,
            network: network.clone(),
            weather: Arc::clone(weather),
            watch: Arc::clone(watch),
            messages: AtomicU64::new(0),
        }
    }
}

impl Wire for StoreWire {
    fn carry(&self, call: Call, message: BoxFuture<'static, Answer>) {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let there = self.weather.to_store(self.client, Leg::Request, number);
        let back = self.weather.to_store(self.client, Leg::Answer, number);
        let (network, watch) = (self.network.clone(), Arc::clone(&self.watch));
        let (client, is_edge) = (self.client, self.client == EDGE);
        self.network.start(async move {
            let runtime: &dyn Runtime = &network;
            runtime.sleep(there.delay).await;
            if there.lost {
                runtime.sleep(NOTICES).await;
                return drop(message);
            }
            network.delivered();
            let answer = message.await;
            // The edge must not claim, whatever it asks for.
            if matches!(call, Call::Claim | Call::Commit) || is_edge {
                watch.look(Some(client));
            }
            runtime.sleep(back.delay).await;
            if back.lost {
                runtime.sleep(NOTICES).await;
                return drop(answer);
            }
            answer.deliver();
        });
    }
}

impl fmt::Debug for StoreWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreWire")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
