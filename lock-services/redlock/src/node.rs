use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use redis::{AsyncConnectionConfig, Client, RedisResult, Value, aio::MultiplexedConnection};

use super::{call::Call, marker::Marker, node_error::NodeError, owed::Owed, scripts};
use lock_core::backend::{
    Moment, Runtime,
    support::{Tasks, lock},
};
use palisade_redis::independent::{self, breaks_connection};

/// The longest time for connecting, and then for the first answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// The time during which a client does not wait for a node that did not answer in time. After it
/// the client waits for the node once more, because a node that is only slower than the others
/// would otherwise never be heard again.
pub(super) const SILENT: Duration = Duration::from_secs(1);

/// One node, and the only connection to it.
///
/// A node runs requests in the order in which they were sent, as long as the connection lives. A
/// late answer does not end the connection, because an undo has to arrive after its try.
pub(super) struct Node {
    index: usize,
    address: String,
    client: Client,
    marker_key: String,
    runs: Arc<Runs>,
    connecting: Mutex<Option<Connecting>>,
    /// The moment at which the node was last given up, unless it has answered since.
    silent_since: Mutex<Option<Moment>>,
    /// The longest lease that the node grants. `None` until its marker was read.
    longest: Mutex<Option<Duration>>,
    pub(super) owed: Owed,
    pub(super) runtime: Arc<dyn Runtime>,
}

/// A connection, or the attempt to make one. The attempt goes on although no caller waits for it.
type Connecting = Shared<BoxFuture<'static, Result<Link, NodeError>>>;

/// A connection to one run of a server.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    pub(super) run_id: Arc<str>,
    /// Whether this run is known to have all data of the node's incarnation.
    is_current: Arc<AtomicBool>,
}

/// One run of the server of a node. A request is answered by this run, or not at all.
///
/// It is needed for a cursor, which has no meaning for another run. A node makes a new connection
/// by itself, also because of other users of the node.
pub(super) struct Run<'a> {
    node: &'a Node,
    link: Link,
    connecting: Connecting,
}

/// The run of the server of each node, so that no server is counted twice.
#[derive(Debug)]
pub(super) struct Runs {
    addresses: Vec<String>,
    ids: Mutex<Vec<Option<Arc<str>>>>,
}

impl Runs {
    pub(super) fn new(addresses: Vec<String>) -> Self {
        let ids = Mutex::new(vec![None; addresses.len()]);
        Self { addresses, ids }
    }

    /// Remembers the run of a node. Fails if another node is the same server.
    fn claim(&self, index: usize, run_id: &Arc<str>) -> Result<(), NodeError> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(other, id): (usize, &Option<Arc<str>>)| {
            (other != index && id.as_ref() == Some(run_id)).then_some(other)
        };
        if let Some(other) = ids.iter().enumerate().find_map(same) {
            return Err(NodeError::SameAs(self.addresses[other].clone()));
        }
        ids[index] = Some(Arc::clone(run_id));
        Ok(())
    }
}

impl Node {
    pub(super) fn new(
        index: usize,
        address: String,
        client: Client,
        marker_key: String,
        runs: Arc<Runs>,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        Self {
            index,
            address,
            client,
            marker_key,
            runs,
            connecting: Mutex::new(None),
            silent_since: Mutex::new(None),
            longest: Mutex::default(),
            owed: Owed::default(),
            runtime,
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Whether the node did not answer in time a moment ago, and has not answered since.
    pub(super) fn is_silent(&self) -> bool {
        let now = self.runtime.now();
        self.silent_since()
            .is_some_and(|since| now.since(since) < SILENT)
    }

    pub(super) fn set_silent(&self, silent: bool) {
        let (mut since, now) = (self.silent_since(), self.runtime.now());
        // The silence begins only once: a node for which no request waits does not become silent by
        // that.
        let goes_on = since.filter(|since| now.since(*since) < SILENT);
        *since = silent.then(|| goes_on.unwrap_or(now));
    }

    /// The longest lease that the node grants, if it was ever ready to grant one.
    pub(super) fn longest(&self) -> Option<Duration> {
        *lock(&self.longest)
    }

    fn silent_since(&self) -> MutexGuard<'_, Option<Moment>> {
        self.silent_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a script for locks on the node, and returns the words of the answer. Fails if the node
    /// does not serve.
    pub(super) async fn ask(&self, call: &Call) -> Result<Vec<String>, NodeError> {
        // The rare case is in a box, so that the future of a request stays small.
        let (mut link, connecting) = match self.linked() {
            Some(linked) => linked,
            None => Box::pin(self.link()).await?,
        };
        if !link.is_current.load(Ordering::Relaxed) {
            Box::pin(self.check_run(&mut link, &connecting)).await?;
        }
        let answer = call.send(&mut link.connection).await;
        serving(self.read(answer, &connecting)?)
    }

    /// The marker of the node, and the run of its server. If the run has all writes that the last
    /// run acknowledged, the run is first noted in the marker, as before a request for a lock.
    pub(super) async fn look(&self) -> Result<(Option<String>, Link), NodeError> {
        let (mut link, connecting) = self.link().await?;
        match self.check_run(&mut link, &connecting).await {
            // The caller sees a restart, because the marker names another run.
            Ok(()) | Err(NodeError::Restarted) => {}
            Err(error) => return Err(error),
        }
        let marker = self.marker(&mut link, &connecting).await?;
        Ok((marker, link))
    }

    /// The present run of the server, if it has all data of the last run.
    pub(super) async fn run_of_server(&self) -> Result<Run<'_>, NodeError> {
        let (mut link, connecting) = self.link().await?;
        if !link.is_current.load(Ordering::Relaxed) {
            self.check_run(&mut link, &connecting).await?;
        }
        let node = self;
        Ok(Run {
            node,
            link,
            connecting,
        })
    }

    /// Changes the marker, if it is still the marker that was seen. Returns the marker after that,
    /// and whether it is the new one.
    pub(super) async fn mark(
        &self,
        seen: Option<&str>,
        incarnation: Option<&str>,
        tail: &str,
    ) -> Result<(bool, String), NodeError> {
        let call = self.marking(seen, incarnation, tail);
        marked(self.run(&call).await?)
    }

    /// Runs a script for operators on the node, whatever its state.
    pub(super) async fn run(&self, call: &Call) -> Result<Vec<String>, NodeError> {
        let (mut link, connecting) = self.link().await?;
        let answer = call.send(&mut link.connection).await;
        self.read(answer, &connecting)
    }

    fn marking(&self, seen: Option<&str>, incarnation: Option<&str>, tail: &str) -> Call {
        let nonce = format!("{:016x}", self.runtime.random() >> 64);
        Call::new(&scripts::MARK, &[&self.marker_key])
            .arg(seen.unwrap_or_default())
            .arg(incarnation.unwrap_or_default())
            .arg(nonce)
            .arg(tail)
    }

    async fn marker(
        &self,
        link: &mut Link,
        connecting: &Connecting,
    ) -> Result<Option<String>, NodeError> {
        let mut get = redis::cmd("GET");
        get.arg(&self.marker_key);
        let answer = get.query_async(&mut link.connection).await;
        self.unless_broken(answer, connecting)
    }

    /// Checks that the run of the server has all data of the incarnation. A server that was started
    /// again has all writes that it acknowledged only if its last run wrote its log before it
    /// answered. Otherwise the node counts as one that lost its state, even if it still has keys.
    /// The marker notes whether the present run writes its log before it answers, for the check
    /// after the next start.
    async fn check_run(&self, link: &mut Link, connecting: &Connecting) -> Result<(), NodeError> {
        let Some(text) = self.marker(link, connecting).await? else {
            return Ok(());
        };
        let Some(marker) = Marker::parse(&text).filter(|marker| marker.state.has_counters()) else {
            return Ok(());
        };
        *lock(&self.longest) = Some(marker.longest);
        let is_durable = loses_nothing(&mut link.connection).await;
        let is_durable = self.unless_broken(is_durable, connecting)?;
        let is_same_run = *marker.run_id == *link.run_id;
        let has_all = is_same_run || (marker.is_durable && is_durable);
        if !has_all {
            return Err(NodeError::Restarted);
        }
        if !is_same_run || marker.is_durable != is_durable {
            let of_this_run = Marker {
                run_id: link.run_id.to_string(),
                is_durable,
                ..marker
            };
            // Another client may have been faster.
            let call = self.marking(
                Some(&text),
                Some(&of_this_run.incarnation),
                &of_this_run.tail(),
            );
            let answer = call.send(&mut link.connection).await;
            self.unless_broken(answer, connecting)?;
        }
        link.is_current.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The connection, if there is one.
    fn linked(&self) -> Option<(Link, Connecting)> {
        let current = self.current();
        let connecting = current.as_ref()?;
        match connecting.peek()? {
            Ok(link) => Some((link.clone(), connecting.clone())),
            Err(_) => None,
        }
    }

    async fn link(&self) -> Result<(Link, Connecting), NodeError> {
        let connecting = self.connecting();
        match connecting.clone().await {
            Ok(link) => Ok((link, connecting)),
            Err(error) => {
                self.discard(&connecting);
                Err(error)
            }
        }
    }

    fn connecting(&self) -> Connecting {
        let mut current = self.current();
        let usable = |connecting: &&Connecting| !matches!(connecting.peek(), Some(Err(_)));
        if let Some(connecting) = current.as_ref().filter(usable) {
            return connecting.clone();
        }
        let (index, runs) = (self.index, Arc::clone(&self.runs));
        let runtime = Arc::clone(&self.runtime);
        let tasks = Tasks::here(Arc::clone(&runtime));
        let connect = connect(self.client.clone(), index, runs, runtime);
        let connecting = async move {
            // Connecting has time limits of its own, and callers may not wait so long.
            let connected = tasks.run_to_end(connect).await;
            connected.unwrap_or_else(|ended| Err(NodeError::Unreachable(ended.to_string())))
        };
        let connecting = connecting.boxed().shared();
        *current = Some(connecting.clone());
        connecting
    }

    fn read(
        &self,
        answer: RedisResult<Value>,
        connecting: &Connecting,
    ) -> Result<Vec<String>, NodeError> {
        let words = match self.unless_broken(answer, connecting)? {
            Value::Array(words) => words.into_iter().map(word).collect(),
            single => word(single).map(|word| vec![word]),
        };
        words.ok_or_else(unreadable)
    }

    fn unless_broken<T>(
        &self,
        answer: RedisResult<T>,
        connecting: &Connecting,
    ) -> Result<T, NodeError> {
        answer.map_err(|error| {
            if breaks_connection(&error) {
                self.discard(connecting);
            }
            NodeError::after(&error)
        })
    }

    /// Gives a connection up, unless it was replaced already.
    fn discard(&self, broken: &Connecting) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|one| one.ptr_eq(broken)) {
            *current = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Connecting>> {
        // The lock is never held across an await, and nothing under it panics.
        self.connecting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run<'_> {
    /// As [`Node::ask`].
    pub(super) async fn ask(&mut self, call: &Call) -> Result<Vec<String>, NodeError> {
        serving(self.run(call).await?)
    }

    /// As [`Node::run`].
    pub(super) async fn run(&mut self, call: &Call) -> Result<Vec<String>, NodeError> {
        let answer = call.send(&mut self.link.connection).await;
        self.node.read(answer, &self.connecting)
    }

    /// As [`Node::mark`].
    pub(super) async fn mark(
        &mut self,
        seen: Option<&str>,
        incarnation: Option<&str>,
        tail: &str,
    ) -> Result<(bool, String), NodeError> {
        let call = self.node.marking(seen, incarnation, tail);
        marked(self.run(&call).await?)
    }

    /// The keys of a page that match a pattern, and the cursor of the next page.
    pub(super) async fn scan(
        &mut self,
        pattern: &str,
        cursor: &str,
        page: usize,
    ) -> Result<(String, Vec<String>), NodeError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor)
            .arg("MATCH")
            .arg(pattern)
            .arg("COUNT")
            .arg(page);
        let answer = scan.query_async(&mut self.link.connection).await;
        self.node.unless_broken(answer, &self.connecting)
    }
}

/// The words of an answer. An error if they say that the node does not serve.
fn serving(words: Vec<String>) -> Result<Vec<String>, NodeError> {
    match words.first().map(String::as_str) {
        Some("no_state") => Err(NodeError::NoState),
        Some("not_serving") => Err(NodeError::of_marker(words.get(1).map(String::as_str))),
        _ => Ok(words),
    }
}

/// Whether the marker is the new one, and the marker.
fn marked(words: Vec<String>) -> Result<(bool, String), NodeError> {
    match <[String; 2]>::try_from(words) {
        Ok([word, marker]) => Ok((word == "marked", marker)),
        Err(_) => Err(unreadable()),
    }
}

fn word(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn unreadable() -> NodeError {
    NodeError::Broken("the answer does not come from a script of Palisade".to_owned())
}

async fn connect(
    client: Client,
    index: usize,
    runs: Arc<Runs>,
    runtime: Arc<dyn Runtime>,
) -> Result<Link, NodeError> {
    // No timer for each answer is needed, because the caller has a time limit of its own, and the
    // system gives up a connection whose other end has vanished.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT_TIME_MAX))
        .set_response_timeout(None);
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await
        .map_err(|error| NodeError::before(&error))?;
    let info = independent::check(&mut connection);
    let info = runtime.timeout(CONNECT_TIME_MAX, info).await;
    let info = info.ok_or(NodeError::Silent)?;
    let info = info.map_err(|error| NodeError::Unreachable(error.to_string()))?;
    let run_id: Arc<str> = match independent::field(&info, "run_id") {
        Some(run_id) => run_id.into(),
        None => {
            let why = "INFO is denied, and nothing else tells whether it was started again";
            return Err(NodeError::Unreachable(why.to_owned()));
        }
    };
    runs.claim(index, &run_id)?;
    Ok(Link {
        connection,
        run_id,
        is_current: Arc::default(),
    })
}

/// Whether each acknowledged write of this run is on its disk. If the server denies the question,
/// the answer is no.
async fn loses_nothing(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    const SETTINGS: [(&str, &str); 3] = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
    ];
    for (name, wanted) in SETTINGS {
        let mut get = redis::cmd("CONFIG");
        get.arg("GET").arg(name);
        let pair: Vec<String> = match get.query_async(connection).await {
            Err(error) if !breaks_connection(&error) => return Ok(false),
            answer => answer?,
        };
        if pair.get(1).is_none_or(|value| value != wanted) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client is left out, because it may show a password.
        f.debug_struct("Node")
            .field("address", &self.address)
            .field("is_silent", &self.is_silent())
            .finish_non_exhaustive()
    }
}
