//! The session with the servers, which owns all nodes of this process.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::FutureExt;
use zookeeper_client::{
    Acls, Client, CreateMode, CreateOptions, Error as ZooKeeperError, OneshotWatcher, SessionState,
    Stat, StateWatcher,
};

use super::{error::Failure, service_url::ServiceUrl, watch::Watch};
use lock_core::{
    Error, ErrorKind, Ttl,
    backend::{
        Runtime,
        support::{OwnedTask, Tasks, lock},
    },
};

/// The length of a silence after which a connection is replaced.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The time that a session has to find another server.
const RECONNECT_WAIT: Duration = Duration::from_secs(1);

/// One session. Its nodes end with it.
///
/// Requests are sent in the order in which the methods are *called*, not in the order in which
/// their futures are polled, and the servers carry them out in that order.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    /// The rights on the nodes. With a login, only its user may use them. Without a login, all
    /// users may.
    acls: Acls<'static>,
    response_timeout: Duration,
    runtime: Arc<dyn Runtime>,
}

impl Session {
    pub(super) fn id(&self) -> i64 {
        self.client.session_id().0
    }

    /// Whether the client knows that the session is over. The servers may know earlier.
    pub(super) fn is_over(&self) -> bool {
        self.client.state().is_terminated()
    }

    /// Whether a server is connected. The client looks for one by itself.
    pub(super) fn is_connected(&self) -> bool {
        !self.is_over() && self.client.state() != SessionState::Disconnected
    }

    /// The present connection.
    pub(super) fn connection(&self) -> Connection {
        let mut states = self.client.state_watcher();
        states.state();
        Connection(states)
    }

    /// Waits a while for a connection to a server.
    async fn connected(&self) -> bool {
        let mut states = self.client.state_watcher();
        let connected = async {
            while !self.is_connected() && !self.is_over() {
                states.changed().await;
            }
        };
        let waited = self.runtime.timeout(RECONNECT_WAIT, connected).await;
        waited.is_some() && self.is_connected()
    }

    /// The longest lease: two thirds of the negotiated time.
    ///
    /// A follower reports its clients to the leader every half tick, and the shortest session is
    /// two ticks. So if a follower has just answered and then dies, the leader may count the
    /// session from a quarter of its length before that answer. The rest of the third is for clocks
    /// that run at different speeds.
    pub(super) fn longest_lease(&self) -> Duration {
        self.client.session_timeout() / 3 * 2
    }

    /// Refuses a lease that this session cannot keep up.
    pub(super) fn check(&self, ttl: Ttl) -> Result<(), Error> {
        let longest = self.longest_lease();
        if ttl.get() <= longest {
            return Ok(());
        }
        let (ttl, session) = (ttl.get(), self.client.session_timeout());
        let why = format!(
            "a lease of {ttl:?} in a session of {session:?}: the longest is {longest:?}; ask for \
             more with session_ms in the URL, up to maxSessionTimeout of the servers"
        );
        Err(Error::not_applied(ErrorKind::InvalidInput).because(why))
    }

    /// Creates a contender, and returns its path.
    pub(super) fn create_contender<'a>(
        &'a self,
        prefix: &'a str,
        data: &[u8],
    ) -> impl Future<Output = Result<(String, Stat), Failure>> + use<'a> {
        let options = CreateMode::EphemeralSequential.with_acls(self.acls);
        let created = self.client.create(prefix, data, &options);
        self.answered(async move {
            let (stat, number) = created.await?;
            Ok::<_, ZooKeeperError>((format!("{prefix}{number}"), stat))
        })
    }

    /// Creates a node that stays.
    pub(super) async fn create(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        let created = self.client.create(path, data, &self.persistent());
        self.answered(created).await.map(drop)
    }

    /// Creates a directory, and its parents.
    pub(super) async fn create_directory(&self, path: &str) -> Result<(), Failure> {
        let options = self.persistent();
        self.answered(self.client.mkdir(path, &options)).await
    }

    pub(super) fn children(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Vec<String>, Failure>> + '_ {
        self.answered(self.client.list_children(path))
    }

    pub(super) fn stat(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Option<Stat>, Failure>> + '_ {
        self.answered(self.client.check_stat(path))
    }

    pub(super) fn data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Vec<u8>, Stat), Failure>> + '_ {
        self.answered(self.client.get_data(path))
    }

    /// Looks at a node that can have no children, with a watch of its children. The watch shows
    /// when the node is gone.
    pub(super) fn watched(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Stat, Watch), Failure>> + use<'_> {
        let watched = self.answered(self.client.get_and_watch_children(path));
        async {
            watched
                .await
                .map(|(_, stat, watcher)| (stat, Watch::new(watcher)))
        }
    }

    /// The data of a node, and a watch that fires with the next change of the node, or at the end
    /// of the session.
    pub(super) fn watched_data(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<(Vec<u8>, Stat, OneshotWatcher), Failure>> + '_ {
        self.answered(self.client.get_and_watch_data(path))
    }

    pub(super) fn set_data<'a>(
        &'a self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Result<Stat, Failure>> + use<'a> {
        self.answered(self.client.set_data(path, data, version))
    }

    pub(super) fn delete(
        &self,
        path: &str,
        version: Option<i32>,
    ) -> impl Future<Output = Result<(), Failure>> + '_ {
        self.answered(self.client.delete(path, version))
    }

    /// Waits until the server of this connection has seen everything that was decided before this
    /// call.
    pub(super) fn sync(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + '_ {
        self.answered(self.client.sync(path))
    }

    /// Several changes at once: all or none.
    pub(super) async fn together(&self, changes: &[Change<'_>]) -> Result<(), Failure> {
        let mut writer = self.client.new_multi_writer();
        for change in changes {
            match *change {
                Change::Check(path, version) => writer.add_check_version(path, version),
                Change::Set(path, data, version) => writer.add_set_data(path, data, Some(version)),
                Change::Touch(path) => writer.add_set_data(path, b"", None),
                Change::Delete(path, version) => writer.add_delete(path, Some(version)),
            }?;
        }
        let written = writer.commit();
        self.answered(written).await.map(drop)
    }

    const fn persistent(&self) -> CreateOptions<'static> {
        CreateMode::Persistent.with_acls(self.acls)
    }

    /// Waits for an answer only for the response timeout, because a request may stay in the client
    /// while there is no connection.
    async fn answered<T, E: Into<Failure>>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure> {
        let answer = self.runtime.timeout(self.response_timeout, request).await;
        answer.map_or(Err(Failure::NoAnswer(None)), |answer| {
            answer.map_err(Into::into)
        })
    }
}

/// One connection of a session.
///
/// On one connection, news and answers come in the order of the changes. On the next connection,
/// watches report the changes in between in any order.
#[derive(Debug)]
pub(super) struct Connection(StateWatcher);

impl Connection {
    /// Whether the connection was never lost. Once it was lost, this stays false.
    pub(super) fn is_unbroken(&mut self) -> bool {
        self.0.changed().now_or_never().is_none()
    }
}

/// One of several changes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    /// Checks that the node has this version.
    Check(&'a str, i32),
    /// Writes the data of a node that has this version.
    Set(&'a str, &'a [u8], i32),
    /// Writes a node, with empty data.
    Touch(&'a str),
    /// Deletes a node that has this version.
    Delete(&'a str, i32),
}

/// The present session, and the means to begin the next one.
#[derive(Debug)]
pub(super) struct Sessions {
    servers: Arc<Servers>,
    tasks: Tasks,
}

/// The servers, and the session with them.
#[derive(Debug)]
struct Servers {
    url: ServiceUrl,
    response_timeout: Duration,
    runtime: Arc<dyn Runtime>,
    /// The lock is never held across an await.
    present: Mutex<Option<Arc<Session>>>,
    /// Locked while a session begins, so that there is one session for all callers.
    beginning: tokio::sync::Mutex<()>,
}

impl Sessions {
    pub(super) fn new(
        url: ServiceUrl,
        response_timeout: Duration,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        Self {
            tasks: Tasks::here(Arc::clone(&runtime)),
            servers: Arc::new(Servers {
                response_timeout,
                runtime,
                url,
                present: Mutex::new(None),
                beginning: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Runs work until the result is dropped.
    pub(super) fn own(&self, work: impl Future<Output = ()> + Send + 'static) -> OwnedTask {
        self.tasks.own(work)
    }

    /// The present session, or a new one. Tries once. Callers take turns, but no caller waits
    /// longer than one try may take.
    pub(super) async fn get(&self) -> Result<Arc<Session>, Error> {
        let one_try = RECONNECT_WAIT + self.servers.response_timeout;
        let found = self.servers.runtime.timeout(one_try, self.find()).await;
        found
            .unwrap_or(Err(ZooKeeperError::Timeout))
            .map_err(no_session)
    }

    /// If a session has had no server for a while, a new session is begun, because after an outage
    /// the client looks for a server less and less often. The old session stays for the holders of
    /// leases in it.
    async fn find(&self) -> Result<Arc<Session>, ZooKeeperError> {
        let present = self.servers.present().clone();
        if let Some(session) = present {
            if session.is_connected() || session.connected().await {
                return Ok(session);
            }
            self.servers.leave(&session);
        }
        // The session is begun on a task, because others wait for it, too, and this caller may be
        // kept and not polled.
        let begun = self.tasks.run(Arc::clone(&self.servers).begin()).await;
        begun.unwrap_or(Err(ZooKeeperError::ClientClosed))
    }
}

impl Servers {
    /// Begins a session, which is the present one from then on.
    async fn begin(self: Arc<Self>) -> Result<Arc<Session>, ZooKeeperError> {
        let _turn = self.beginning.lock().await;
        // Another caller may have begun a session in between.
        let present = self.present().clone();
        if let Some(session) = present.filter(|session| session.is_connected()) {
            return Ok(session);
        }
        let session = Arc::new(self.connect().await?);
        *self.present() = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn connect(&self) -> Result<Session, ZooKeeperError> {
        let mut connector = Client::connector()
            .with_session_timeout(self.url.session_timeout)
            .with_connection_timeout(std::cmp::min(self.url.session_timeout * 2 / 5, SILENCE_MAX))
            .with_fail_eagerly();
        if let Some(login) = &self.url.login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        let connecting = connector.connect(&self.url.servers);
        let client = self
            .runtime
            .timeout(self.response_timeout, connecting)
            .await
            .unwrap_or(Err(ZooKeeperError::Timeout))?;
        Ok(Session {
            client,
            acls: match self.url.login {
                Some(_) => Acls::creator_all(),
                None => Acls::anyone_all(),
            },
            response_timeout: self.response_timeout,
            runtime: Arc::clone(&self.runtime),
        })
    }

    /// Notes that this session is not the present one any more.
    fn leave(&self, session: &Arc<Session>) {
        self.present()
            .take_if(|present| Arc::ptr_eq(present, session));
    }

    fn present(&self) -> MutexGuard<'_, Option<Arc<Session>>> {
        lock(&self.present)
    }
}

fn no_session(error: ZooKeeperError) -> Error {
    let (kind, why) = match error {
        ZooKeeperError::AuthFailed => (ErrorKind::Refused, "user or password is wrong"),
        ZooKeeperError::Timeout => (ErrorKind::Unavailable, "no server answers in time"),
        _ => (ErrorKind::Unavailable, "no server can be reached"),
    };
    Error::not_applied(kind).because(why).caused_by(error)
}
