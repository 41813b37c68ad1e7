//! A service over HTTP behind the layer that checks tokens. Requests and answers are messages.
//!
//! `handler.rs` is the service, `keys.rs` checks and signs tokens, and `request.rs` describes
//! requests.

mod handler;
mod keys;
mod request;

use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use fenced_http::FencingLayer;
use fenced_store::{Memory, MemoryFencedStore, memory::MemoryTxOptions};
use http::{Request, Response, StatusCode};
use lock_core::{Plausibility, backend::Runtime};
use tokio::sync::oneshot;
use tower::{Layer, ServiceExt, service_fn, util::BoxCloneSyncService};

use self::handler::Handler;
pub(crate) use self::{
    keys::Gateway,
    request::{Body, Door, Flaw, Manner, WRITE_ID},
};
use crate::{
    schedule::{Log, Weather},
    service::{Fate, Leg},
    store::{StoreWire, Watch},
    world::Process,
};

/// The number of the service among the clients of the store.
pub(crate) const EDGE: u32 = 800;

type Service = BoxCloneSyncService<Request<Bytes>, Response<Bytes>, Infallible>;

/// The service, and the way to it.
pub(crate) struct Edge {
    process: Process,
    network: Process,
    weather: Arc<Weather>,
    log: Arc<Log>,
    gateway: Gateway,
    /// One service for each door.
    open: Service,
    signed: Service,
}

/// The sender of an answer, and the answer's fate.
type Back = (oneshot::Sender<Response<Bytes>>, Fate);

impl Edge {
    pub(crate) fn new(
        process: Process,
        network: &Process,
        (weather, watch, log): (&Arc<Weather>, &Arc<Watch>, &Arc<Log>),
        (memory, lock_timeout): (&Memory, Duration),
    ) -> Arc<Self> {
        let wire = StoreWire::new(EDGE, network, weather, watch);
        let options = MemoryTxOptions::default().lock_timeout(lock_timeout);
        let store = MemoryFencedStore::in_memory(memory.through(Arc::new(wire)))
            .with_options(options)
            .plausibility(Plausibility::unchecked())
            .runtime(Arc::new(process.clone()));
        let handler = Arc::new(Handler::new(process.clone(), store, watch, log));
        let service = service_fn(move |request: Request<Bytes>| {
            let handler = Arc::clone(&handler);
            async move { Ok::<_, Infallible>(handler.answer(&request).await) }
        });
        let gateway = Gateway::new();
        let open = FencingLayer::required(keys::open(&process), Door::Open.scope());
        let signed = FencingLayer::required(gateway.verifier(), Door::Signed.scope());
        Arc::new(Self {
            network: network.clone(),
            weather: Arc::clone(weather),
            log: Arc::clone(log),
            gateway,
            open: BoxCloneSyncService::new(open.layer(service.clone())),
            signed: BoxCloneSyncService::new(signed.layer(service)),
            process,
        })
    }

    pub(crate) const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Sends a request of this client. No two requests of a client have the same number.
    pub(crate) fn send(
        self: &Arc<Self>,
        client: u32,
        number: u64,
        request: Request<Bytes>,
    ) -> oneshot::Receiver<Response<Bytes>> {
        let there = self.weather.to_edge(client, Leg::Request, number);
        let back = self.weather.to_edge(client, Leg::Answer, number);
        let (answer, answered) = oneshot::channel();
        let edge = Arc::clone(self);
        self.network.start(async move {
            let runtime: &dyn Runtime = &edge.network;
            runtime.sleep(there.delay).await;
            if !there.lost {
                edge.serve(request.clone(), Some((answer, back)));
            }
            if let Some(after) = there.copy_after {
                runtime.sleep(after).await;
                edge.serve(request, None);
            }
        });
        answered
    }

    /// A request, or a copy of one, whose answer is lost, comes to the service.
    fn serve(self: &Arc<Self>, request: Request<Bytes>, back: Option<Back>) {
        self.network.delivered();
        let service = match Door::of(request.uri().path()) {
            Some(Door::Signed) => self.signed.clone(),
            _ => self.open.clone(),
        };
        let edge = Arc::clone(self);
        self.process.start(async move {
            let Ok(response) = service.oneshot(request).await;
            match back {
                Some(back) => edge.send_back(response, back),
                None if response.status() == StatusCode::PRECONDITION_FAILED => {
                    edge.log.coverage().note("late copy refused at the edge");
                }
                None => {}
            }
        });
    }

    fn send_back(self: &Arc<Self>, response: Response<Bytes>, (answer, back): Back) {
        let network = self.network.clone();
        self.network.start(async move {
            let runtime: &dyn Runtime = &network;
            runtime.sleep(back.delay).await;
            if !back.lost {
                // The client may have gone meanwhile.
                drop(answer.send(response));
            }
        });
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge").finish_non_exhaustive()
    }
}
