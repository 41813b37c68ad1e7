use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        watch,
    },
    time::Instant,
};

use super::{
    Fault,
    fault::{Break, Flow, Passage},
    frames::{self, Frames, Kind},
    lock,
    on_time::sleep_until,
    trap::{Place, Snare, Traps},
};

/// One client's connection to the server.
#[derive(Debug)]
pub(super) struct Connection {
    number: usize,
    flow: watch::Sender<Flow>,
    traps: Arc<Traps>,
    /// One entry for each forwarded request that has no reply yet: the trap at that reply.
    unanswered: Mutex<VecDeque<Option<Arc<Snare>>>>,
    dropped: AtomicUsize,
    ended: AtomicBool,
}

/// A message in transit, and when it arrived; no message means the end of the stream.
type InTransit = (Instant, Option<Vec<u8>>);

/// A kind of message on its way.
#[derive(Clone, Copy)]
enum Stream {
    Requests,
    Answers,
}

impl Connection {
    pub(super) fn new(number: usize, flow: Flow, traps: Arc<Traps>) -> Arc<Self> {
        Arc::new(Self {
            number,
            flow: watch::Sender::new(flow),
            traps,
            unanswered: Mutex::default(),
            dropped: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn suffer(&self, fault: Fault) {
        self.flow.send_modify(|flow| flow.suffer(fault));
    }

    pub(super) fn heal(&self) {
        self.flow.send_modify(Flow::heal);
    }

    pub(super) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Carries messages until both ends have closed, or the connection breaks.
    pub(super) async fn carry(&self, mut client: TcpStream, mut server: TcpStream) {
        let how = {
            let (from_client, to_client) = client.split();
            let (from_server, to_server) = server.split();
            let (requests, answers) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
            let carried = async {
                tokio::join!(
                    take_in(from_client, requests.0),
                    self.send_on(requests.1, to_server, Stream::Requests),
                    take_in(from_server, answers.0),
                    self.send_on(answers.1, to_client, Stream::Answers),
                );
            };
            tokio::select! {
                biased;
                how = self.broken() => Some(how),
                () = carried => None,
            }
        };
        let ended = match how {
            Some(Break::Reset) => reset(client, server),
            Some(Break::Cut) => cut(client, server).await,
            None => Ok(()),
        };
        // If one side has gone already, it needs no notice.
        ended.ok();
        self.ended.store(true, Ordering::Release);
    }

    async fn broken(&self) -> Break {
        let mut flow = self.flow.subscribe();
        loop {
            if let Some(how) = flow.borrow_and_update().broken {
                return how;
            }
            // Cannot fail: the sender is `self`.
            flow.changed().await.ok();
        }
    }

    /// Delivers one direction. Messages that have arrived are delivered even if their sender is
    /// gone.
    async fn send_on(
        &self,
        mut messages: UnboundedReceiver<InTransit>,
        mut to: WriteHalf<'_>,
        stream: Stream,
    ) {
        while let Some((came_in, message)) = messages.recv().await {
            let delay = self.flow.borrow().delay;
            sleep_until(came_in + delay).await;
            let delivered = match message {
                Some(message) => self.deliver(&message, &mut to, stream).await,
                None if self.may_pass(stream, Kind::Reply).await => to.shutdown().await,
                None => Ok(()),
            };
            if delivered.is_err() {
                return;
            }
        }
    }

    async fn deliver(
        &self,
        message: &[u8],
        to: &mut WriteHalf<'_>,
        stream: Stream,
    ) -> io::Result<()> {
        let kind = match stream {
            Stream::Requests => Kind::Reply,
            Stream::Answers => frames::kind(message),
        };
        self.spring_traps(message, stream, kind);
        if !self.may_pass(stream, kind).await {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if matches!(stream, Stream::Requests) && !frames::is_subscription(message) {
            let at_reply = self.traps.triggered(Place::ReplyTo, message);
            lock(&self.unanswered).push_back(at_reply);
        }
        to.write_all(message).await
    }

    fn spring_traps(&self, message: &[u8], stream: Stream, kind: Kind) {
        let snare = match (stream, kind) {
            (Stream::Requests, _) => self.traps.triggered(Place::Request, message),
            (Stream::Answers, Kind::Push) => self.traps.triggered(Place::Push, message),
            (Stream::Answers, Kind::Reply) => lock(&self.unanswered).pop_front().flatten(),
        };
        if let Some(snare) = snare {
            self.suffer(snare.spring(self.number));
        }
    }

    /// Waits while messages are held; false if they are dropped, by a fault or by a break.
    async fn may_pass(&self, stream: Stream, kind: Kind) -> bool {
        let passage = |flow: &Flow| match (stream, kind) {
            _ if flow.broken.is_some() => Passage::Drop,
            (Stream::Requests, _) => flow.requests,
            (Stream::Answers, Kind::Push) => flow.pushes,
            (Stream::Answers, Kind::Reply) => flow.replies,
        };
        let mut flow = self.flow.subscribe();
        let released = flow.wait_for(|flow| passage(flow) != Passage::Hold).await;
        released.is_ok_and(|flow| passage(&flow) == Passage::Pass)
    }
}

/// Reads the messages of one end without delay: they wait in the network, not in their sender.
async fn take_in(mut from: ReadHalf<'_>, messages: UnboundedSender<InTransit>) {
    let mut frames = Frames::default();
    let mut buffer = [0; 4096];
    // A connection that fails has ended, too.
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        frames.extend(&buffer[..read]);
        while let Some(message) = frames.next() {
            // There is no receiver any more once the connection is over.
            messages.send((Instant::now(), Some(message))).ok();
        }
    }
    let rest = frames.rest();
    if !rest.is_empty() {
        messages.send((Instant::now(), Some(rest))).ok();
    }
    messages.send((Instant::now(), None)).ok();
}

fn reset(client: TcpStream, server: TcpStream) -> io::Result<()> {
    for end in [client, server] {
        end.set_zero_linger()?;
    }
    Ok(())
}

/// Closes towards both ends, and reads on: closing with unread data would cause a reset.
async fn cut(mut client: TcpStream, mut server: TcpStream) -> io::Result<()> {
    client.shutdown().await?;
    server.shutdown().await?;
    let (mut ignored, mut sink) = (tokio::io::sink(), tokio::io::sink());
    tokio::try_join!(
        tokio::io::copy(&mut client, &mut ignored),
        tokio::io::copy(&mut server, &mut sink),
    )?;
    Ok(())
}
