//! The way between clients and the service. Each message is a task of the network, so that it
//! arrives although its sender has gone.

use std::{
    fmt,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_core::{
    Error, ErrorKind, ResourceName,
    backend::{Moment, Runtime, support::lock},
};
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    asker::{Client, Push},
    observe::{Event, Kind, MessageId, Observe, Sent},
    server::{Arrival, Server},
    table::{Step, Table},
};

/// The fate of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// How long it takes.
    pub delay: Duration,
    /// It does not arrive.
    pub lost: bool,
    /// A copy of the message arrives so long after it, or after the time at which it would have
    /// arrived. The answer to the copy is lost. An answer has no copies.
    pub copy_after: Option<Duration>,
}

/// Decides the fate of messages.
pub trait Fates: Send + Sync {
    /// The fate of a message of this client. The request and its answer have the same number, and
    /// pushes are counted separately, from 0 on: a missing answer shifts no other fate.
    fn fate(&self, client: u32, leg: Leg, number: u64) -> Fate;
}

impl<F: Fn(u32, Leg, u64) -> Fate + Send + Sync> Fates for F {
    fn fate(&self, client: u32, leg: Leg, number: u64) -> Fate {
        self(client, leg, number)
    }
}

/// The way that a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leg {
    /// From a client to the service.
    Request,
    /// The answer to a request.
    Answer,
    /// From the service to a waiter.
    Push,
}

/// The network and the server behind it.
pub(super) struct Network {
    runtime: Arc<dyn Runtime>,
    on: Handle,
    fates: Box<dyn Fates>,
    observer: Box<dyn Observe>,
    /// Never held across an await.
    pub(super) server: Mutex<Server>,
    under_way: AtomicUsize,
}

/// The work of a request at the server.
pub(super) trait Work<T>:
    Fn(&mut Table, &mut Step<'_>) -> Result<T, Error> + Send + Sync + 'static
{
}

impl<T, F> Work<T> for F where
    F: Fn(&mut Table, &mut Step<'_>) -> Result<T, Error> + Send + Sync + 'static
{
}

/// How far a request has come.
enum Arrived<T> {
    Answered(Result<T, Error>),
    /// The server is down.
    Refused,
    /// The request was lost, or the server went down before it read the request.
    Nowhere,
}

/// One request, until it has its answer.
struct Passage<F, T> {
    network: Arc<Network>,
    message: MessageId,
    there: Fate,
    back: Fate,
    work: F,
    answer: oneshot::Sender<Result<T, Error>>,
}

impl Network {
    pub(super) fn new(
        server: Server,
        runtime: Arc<dyn Runtime>,
        fates: Box<dyn Fates>,
        observer: Box<dyn Observe>,
    ) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            on: Handle::current(),
            fates,
            observer,
            server: Mutex::new(server),
            under_way: AtomicUsize::new(0),
        })
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> Moment {
        self.runtime.now()
    }

    pub(super) fn observe(&self, event: Event) {
        self.observer.observe(self.now(), event);
    }

    /// Sends a request, and waits for its answer as long as the client does. `copied` is called if
    /// a copy of it may arrive later.
    ///
    /// # Cancel safety
    /// The request arrives all the same.
    pub(super) async fn call<T, F>(
        self: &Arc<Self>,
        client: &Client,
        (kind, resource): (Kind, Option<&ResourceName>),
        timeout: Duration,
        copied: impl FnOnce(),
        work: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Work<T>,
    {
        let number = client.requests.fetch_add(1, Ordering::Relaxed);
        let mut there = self.fates.fate(client.number, Leg::Request, number);
        let back = self.fates.fate(client.number, Leg::Answer, number);
        let message = MessageId {
            client: client.number,
            number,
        };
        self.observe(Event::Sent(Sent {
            message,
            kind,
            resource: resource.cloned(),
        }));
        // A caller whose request for several leases was answered cannot announce a copy of it.
        if kind == Kind::Together && !there.lost && !back.lost {
            there.copy_after = None;
        }
        if there.copy_after.is_some() {
            copied();
        }
        let (answer, answered) = oneshot::channel();
        let passage = Passage {
            network: Arc::clone(self),
            message,
            there,
            back,
            work,
            answer,
        };
        self.spawn(passage.travel());
        let answered = async {
            match answered.await {
                Ok(answer) => answer,
                // The request or its answer was lost.
                Err(_) => pending().await,
            }
        };
        let answer = client.runtime.timeout(timeout, answered).await;
        answer.unwrap_or_else(|| Err(Error::unknown(ErrorKind::Unavailable).because("no answer")))
    }

    /// Sends pushes to waiters.
    fn push(self: &Arc<Self>, pushes: Vec<Push>) {
        for push in pushes {
            let client = push.asker.client();
            let number = client.pushes.fetch_add(1, Ordering::Relaxed);
            let fate = self.fates.fate(client.number, Leg::Push, number);
            if fate.lost && fate.copy_after.is_none() {
                continue;
            }
            let network = Arc::clone(self);
            self.spawn(async move {
                network.pass(fate.delay).await;
                if !fate.lost {
                    network.deliver(&push);
                }
                if let Some(after) = fate.copy_after {
                    network.pass(after).await;
                    network.deliver(&push);
                }
            });
        }
    }

    fn deliver(&self, Push { asker, pushed }: &Push) {
        self.observe(Event::Pushed {
            client: asker.client().number,
            attempt: asker.attempt().id,
            token: pushed.map(|pushed| pushed.token),
        });
        asker.receive(*pushed);
    }

    /// A request, or a copy of one, comes to the server. A paused server reads it later.
    async fn arrive<T, F: Work<T>>(
        self: &Arc<Self>,
        message: (MessageId, bool),
        work: &F,
    ) -> Arrived<T> {
        let mut was_accepted = false;
        loop {
            let mut pushes = Vec::new();
            let arrival = lock(&self.server).arrive(
                message,
                &*self.runtime,
                &*self.observer,
                &mut pushes,
                work,
            );
            self.push(pushes);
            match arrival {
                Arrival::Done(answer) => return Arrived::Answered(answer),
                Arrival::Down if was_accepted => return Arrived::Nowhere,
                Arrival::Down => return Arrived::Refused,
                Arrival::Paused(until) => {
                    was_accepted = true;
                    self.runtime.sleep_until(until).await;
                }
            }
        }
    }

    async fn pass(&self, time: Duration) {
        if !time.is_zero() {
            self.runtime.sleep(time).await;
        }
    }

    /// Runs a message, and counts it until it has arrived.
    fn spawn(self: &Arc<Self>, message: impl Future<Output = ()> + Send + 'static) {
        let counted = Counted::new(self);
        let task = async move {
            let _counted = counted;
            message.await;
        };
        self.runtime.spawn(&self.on, Box::pin(task));
    }
}

impl<F: Work<T>, T: Send + 'static> Passage<F, T> {
    async fn travel(self) {
        let Self {
            network,
            message,
            there,
            back,
            work,
            answer,
        } = self;
        network.pass(there.delay).await;
        let arrived = match there.lost {
            true => Arrived::Nowhere,
            false => network.arrive((message, false), &work).await,
        };
        let result = match arrived {
            // A client that has no connection leaves no copies.
            Arrived::Refused => Err(refused()),
            arrived => {
                if let Some(after) = there.copy_after {
                    network.send_copy(message, after, work);
                }
                match arrived {
                    Arrived::Answered(result) => result,
                    _ => return,
                }
            }
        };
        if back.lost || answer.is_closed() {
            return;
        }
        network.pass(back.delay).await;
        network.observe(Event::Answered(message));
        // The caller may have gone meanwhile.
        drop(answer.send(result));
    }
}

impl Network {
    fn send_copy<T, F: Work<T>>(self: &Arc<Self>, message: MessageId, after: Duration, work: F)
    where
        T: Send + 'static,
    {
        let network = Arc::clone(self);
        self.spawn(async move {
            network.pass(after).await;
            drop(network.arrive((message, true), &work).await);
        });
    }
}

fn refused() -> Error {
    Error::not_applied(ErrorKind::Unavailable).because("connection refused")
}

/// A message that is under way.
struct Counted(Arc<Network>);

impl Counted {
    fn new(network: &Arc<Network>) -> Self {
        network.under_way.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(network))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
