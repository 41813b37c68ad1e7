use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};

use super::{
    call::Call,
    keys::Keys,
    node::{Node, Runs},
    node_error::NodeError,
    service_url,
};
use lock_core::{
    Error, ErrorKind, Ttl,
    backend::{
        ConnectOptions, Runtime,
        support::{Tasks, connecting::Settings},
    },
};

/// The time for which a client waits for further nodes after enough have answered, in addition to
/// the time that these took.
const GRACE: Duration = Duration::from_millis(20);

/// All nodes. A request goes to all of them at once.
#[derive(Debug)]
pub(super) struct Nodes {
    all: Vec<Arc<Node>>,
    timeout: Duration,
    pub(super) runtime: Arc<dyn Runtime>,
}

/// The decision of the caller after each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More answers are needed.
    Wait,
    /// No more answers are needed, but others that come soon are used.
    Enough,
    /// No other answer matters, and a request that was not sent is not needed.
    Done,
    /// No other answer matters, but the other nodes shall run the request, too. A task waits for
    /// them.
    Settled,
}

/// The answer of one node: the words of the script, or the reason why the node takes no part.
pub(super) type Answer = Result<Vec<String>, NodeError>;

/// A request to a node that has not answered yet, with the index of the node.
type Pending = (usize, BoxFuture<'static, Answer>);

impl Nodes {
    /// The nodes of a URL. They are connected at the first request.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a URL or setting that is invalid.
    pub(super) fn new(
        options: &ConnectOptions,
        runtime: Arc<dyn Runtime>,
    ) -> Result<(Self, Settings), Error> {
        let (nodes, settings) = service_url::read(options)?;
        let addresses = nodes.iter().map(|(address, _)| address.clone()).collect();
        let (marker, runs) = (Keys::new(&settings.prefix).marker(), Runs::new(addresses));
        let runs = Arc::new(runs);
        let node = |(index, (address, client))| {
            let (marker, runs) = (marker.clone(), Arc::clone(&runs));
            let runtime = Arc::clone(&runtime);
            Arc::new(Node::new(index, address, client, marker, runs, runtime))
        };
        let nodes = Self {
            all: nodes.into_iter().enumerate().map(node).collect(),
            timeout: settings.response_timeout,
            runtime,
        };
        Ok((nodes, settings))
    }

    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// More than half of all nodes, whatever their states.
    pub(super) const fn majority(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// A ttl that is long enough for one try.
    pub(super) fn ttl_of_a_try(&self) -> Ttl {
        Ttl::new(self.timeout * 2 + GRACE * 50).unwrap_or(Ttl::secs(30))
    }

    pub(super) fn node(&self, index: usize) -> &Node {
        &self.all[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().map(|node| &**node)
    }

    /// Sends the same call to all nodes.
    pub(super) async fn ask_all(
        &self,
        call: impl Into<Arc<Call>>,
        take: impl FnMut(usize, Answer) -> Step,
    ) {
        let call = call.into();
        let calls = (0..self.len()).map(|index| (index, Arc::clone(&call)));
        self.ask(calls, Step::Wait, take).await;
    }

    /// Sends calls to some nodes, all at once, and passes each answer to `take` until it has
    /// enough. For a node whose time is over, the answer is [`NodeError::Silent`]. Answers that do
    /// not matter any more are not passed on.
    ///
    /// All requests are sent before the first answer is read, except to nodes that are not
    /// connected.
    ///
    /// # Cancel safety
    /// A request without an answer is under way, and may be run.
    pub(super) async fn ask(
        &self,
        calls: impl Iterator<Item = (usize, Arc<Call>)>,
        first: Step,
        mut take: impl FnMut(usize, Answer) -> Step,
    ) {
        // This is not the deadline of a caller, but the time for the network.
        let asked = self.runtime.now();
        let request = |(index, call): (usize, Arc<Call>)| -> Pending {
            let node = Arc::clone(&self.all[index]);
            (index, Box::pin(async move { node.ask(&call).await }))
        };
        let mut pending: Vec<Pending> = calls.map(request).collect();
        let mut enough = first != Step::Wait;
        let mut until = asked + if enough { GRACE } else { self.timeout };
        // The timer is set too early and then put off, because setting a timer to an earlier time
        // costs a system call.
        let mut alarm_at = std::cmp::min(until, asked + GRACE);
        let mut alarm = self.runtime.sleep_until(alarm_at);
        while !pending.is_empty() {
            // Once there are enough answers, a silent node is not waited for.
            let settled = enough
                && pending
                    .iter()
                    .all(|(index, _)| self.node(*index).is_silent());
            let next = poll_fn(|cx| match answered(&mut pending, cx) {
                Some(answer) => Poll::Ready(Some(answer)),
                None if settled => Poll::Ready(None),
                None => alarm.as_mut().poll(cx).map(|()| None),
            });
            let Some((index, answer)) = next.await else {
                if settled || self.runtime.now() >= until {
                    break;
                }
                (alarm_at, alarm) = (until, self.runtime.sleep_until(until));
                continue;
            };
            self.node(index).set_silent(false);
            match take(index, answer) {
                Step::Wait => {}
                Step::Done => return,
                Step::Settled => return self.see_to(pending),
                Step::Enough if enough => {}
                Step::Enough => {
                    enough = true;
                    let elapsed = self.runtime.now().since(asked);
                    until = asked + std::cmp::min(elapsed * 2 + GRACE, self.timeout);
                    if alarm_at > until {
                        (alarm_at, alarm) = (until, self.runtime.sleep_until(until));
                    }
                }
            }
        }
        for (index, request) in pending {
            drop(request);
            self.node(index).set_silent(true);
            take(index, Err(NodeError::Silent));
        }
    }

    /// Makes these nodes, which did not answer, run the end of an attempt as soon as they answer.
    pub(super) fn owe(&self, errors: &[(usize, NodeError)], end: &Arc<Call>) {
        let missing = errors.iter().filter(|(_, error)| !error.has_nothing());
        missing.for_each(|(index, _)| self.all[*index].owe(end));
    }

    /// Keeps requests alive for the time for which nodes are waited for. A request that is dropped
    /// before its turn is not sent, and a server that does not know the script has to get its text.
    fn see_to(&self, pending: Vec<Pending>) {
        if pending.is_empty() {
            return;
        }
        let answers = join_all(pending.into_iter().map(|(_, answer)| answer));
        let (runtime, timeout) = (Arc::clone(&self.runtime), self.timeout);
        Tasks::here(Arc::clone(&self.runtime)).spawn(async move {
            runtime.timeout(timeout, answers).await;
        });
    }

    /// The errors in words, node by node.
    pub(super) fn in_words<'a>(
        &self,
        errors: impl IntoIterator<Item = &'a (usize, NodeError)>,
    ) -> String {
        let words = errors
            .into_iter()
            .map(|(index, error)| format!("{}: {error}", self.node(*index).address()));
        words.collect::<Vec<_>>().join("; ")
    }

    /// The error for too few nodes that serve. Its outcome is "not applied".
    pub(super) fn too_few(&self, errors: &[(usize, NodeError)]) -> Error {
        let serving = self.len() - errors.len();
        let hopeless = |error: &&(usize, NodeError)| error.1.needs_an_operator();
        let lost = errors.iter().filter(hopeless).count();
        // If the lost nodes are a minority, the others would be a majority once they come back.
        let kind = if lost > self.len() - self.majority() {
            ErrorKind::Refused
        } else {
            ErrorKind::Unavailable
        };
        let todo = match kind {
            ErrorKind::Refused if lost == self.len() => "; provision the nodes",
            ErrorKind::Refused => "; an operator has to look at them",
            _ => "",
        };
        Error::not_applied(kind).because(format!(
            "{serving} of {} nodes have a part in it, and {} are needed ({}){todo}",
            self.len(),
            self.majority(),
            self.in_words(errors),
        ))
    }
}

/// The first answer that has arrived. All requests are polled, because there are few of them, and a
/// set that tracks wake-ups costs more.
fn answered(pending: &mut Vec<Pending>, cx: &mut Context<'_>) -> Option<(usize, Answer)> {
    let mut requests = pending.iter_mut().enumerate();
    let (at, answer) = requests.find_map(|(at, (_, request))| match request.as_mut().poll(cx) {
        Poll::Ready(answer) => Some((at, answer)),
        Poll::Pending => None,
    })?;
    let (index, _) = pending.remove(at);
    Some((index, answer))
}
