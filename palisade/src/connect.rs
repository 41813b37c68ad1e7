use std::{fmt, future::IntoFuture, sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind, InitialToken, Issuer, LockManager, LockManagerBuilder, Operation, Ttl,
    backend::{BoxFuture, Clock, LockService, SystemClock, support::OURSELVES},
    memory::MemoryBackend,
};

use crate::settings::Settings;

/// Connects to the lock service that the URL names.
///
/// | URL | feature | lock service |
/// |---|---|---|
/// | `memory:` | | in this process, shared by this manager and its clones only |
/// | `postgres://SERVER/DATABASE` | `postgres` | a PostgreSQL database, 12 or newer |
/// | `redis://SERVER` | `redis` | one Redis server, 7.0 or newer |
/// | `redis+sentinel://SENTINELS/NAME` | `redis` | the primary that they call `NAME` |
/// | `redis+cluster://NODES` | `redis` | a Redis Cluster; list some of its nodes |
/// | `redlock+redis://SERVER,SERVER,SERVER` | `redlock` | independent Redis servers |
/// | `rediss`, `rediss+sentinel`, .. `redlock+rediss` | `redis-tls` | the same over TLS |
/// | `etcd://NODES` | `etcd` | etcd, 3.4 or newer: one node, or some nodes of a cluster |
/// | `etcds` | `etcd-tls` | the same over TLS |
/// | `zookeeper://SERVERS/CHROOT` | `zookeeper` | a ZooKeeper ensemble, 3.5 or newer |
///
/// `SERVER` is `[user:password@]host[:port][/db]`. `SENTINELS` and `NODES` are hosts separated
/// by commas, such as `user:password@a:7000,b:7000`. User and password are those of the servers
/// that keep the locks; `NAME` may be followed by `/db`.
///
/// Parameters of the URLs with TLS: `tls_ca`, `tls_cert` and `tls_key` name files in PEM format
/// (the authority to trust instead of the system's, and the client's own certificate and key).
/// The first connection to Redis over TLS installs *ring* as rustls's provider of cryptography
/// for the whole process, unless the program has installed one before.
///
/// `sentinel_user` and `sentinel_password` are for sentinels, which have no other login.
/// `SERVERS` of ZooKeeper is `[user:password@]host[:port],..`; its only parameter is
/// `session_ms`, the time after which the servers give up a client that died (default 30000).
/// The longest lease is two thirds of the time that the servers agree to.
///
/// A URL of Postgres names one host. Its parameters are those of sqlx, and `listen`; any other is
/// refused, because sqlx would ignore a misspelt `sslmode`.
///
/// Each of them may also have `prefix` and `response_timeout_ms`, as in
/// `redis://host?prefix=jobs&response_timeout_ms=500`; a setting that the program gives itself
/// ([`Connect::prefix`], [`Connect::response_timeout`]) counts more.
///
/// Reserved characters in user, password or name must be percent-encoded, e.g. `%40` for `@`.
///
/// Each call with `memory:` makes a lock service of its own, inside the manager and its clones:
/// managers that were connected by separate calls do not exclude each other. To share one, give
/// clones of one [`MemoryBackend`] to
/// [`LockManagerBuilder::build`].
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a scheme that is unknown or whose feature is not compiled in,
/// [`ErrorKind::InvalidInput`] for an invalid URL or setting, [`ErrorKind::Unavailable`] if no
/// server answers, [`ErrorKind::ConfigMismatch`] if other clients use the lock service with other
/// settings.
///
/// # Panics
/// When it is awaited outside a Tokio runtime, which the watchdog needs for as long as the manager
/// is used.
///
/// # Cancel safety
/// Cancel safe: the connection is closed.
///
/// # Examples
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), palisade::Error> {
/// use palisade::Ttl;
///
/// let locks = palisade::connect("memory:").ttl(Ttl::secs(5)).await?;
/// let guard = locks.acquire("report:2026-11").await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
pub fn connect(url: impl Into<String>) -> Connect {
    Connect {
        url: url.into(),
        prefix: None,
        response_timeout: None,
        initial_token: InitialToken::default(),
        clock: Arc::new(SystemClock),
        manager: LockManager::builder(),
    }
}

/// A connection to be made, with its settings; see [`connect`]. Await it.
#[derive(Clone)]
#[must_use = "nothing is connected until this is awaited"]
pub struct Connect {
    url: String,
    prefix: Option<String>,
    response_timeout: Option<Duration>,
    initial_token: InitialToken,
    clock: Arc<dyn Clock>,
    manager: LockManagerBuilder,
}

impl Connect {
    /// The prefix of all keys at a lock service; in a ZooKeeper ensemble, the directory. Defaults
    /// to `palisade`.
    ///
    /// Managers with different prefixes do not see each other's locks. At most 64 letters, digits
    /// and `-._:`; anything else is an error when connecting.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// How long to wait for a server to connect and to answer. Defaults to 2 s, for ZooKeeper to
    /// 5 s, and for a node of Redlock to 250 ms.
    ///
    /// The options of each lock service say which times it takes, and what a long one costs.
    /// `memory:` answers at once.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = Some(timeout);
        self
    }

    /// Where a missing token counter starts. Defaults to the lock service's wall clock.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// See [`LockManagerBuilder::issuer`].
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.manager = self.manager.issuer(issuer);
        self
    }

    /// The clock of the lock service: ends of waits and of leases are moments of it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Connects, and puts the lock service in front of this store, whose missing migrations are
    /// applied. A role that may not apply them needs none.
    ///
    /// # Errors
    /// As awaiting this, and as [`migrate`](fenced_store::FencedStore::migrate) and
    /// [`check`](fenced_store::FencedStore::check).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "postgres")]
    /// # use palisade::store::{FencedLockError, PgFencedStore};
    /// # async fn f(store: PgFencedStore) -> Result<(), FencedLockError> {
    /// let accounts = palisade::connect("redis://localhost").in_front_of(store).await?;
    /// accounts.acquire("account:42").await?.release().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "store")]
    pub async fn in_front_of<DB: fenced_store::Dialect>(
        self,
        store: fenced_store::FencedStore<DB>,
    ) -> Result<fenced_store::FencedLocks<DB>, fenced_store::FencedLockError> {
        store.migrate().await?;
        store.check(fenced_store::Rights::ClaimAndWrite).await?;
        let locks = self.await?;
        Ok(fenced_store::FencedLocks::new(locks, store))
    }

    /// See [`LockManagerBuilder::ttl`].
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.manager = self.manager.ttl(ttl);
        self
    }

    /// See [`LockManagerBuilder::max_hold`].
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.manager = self.manager.max_hold(max_hold);
        self
    }

    /// See [`LockManagerBuilder::max_waiters`].
    pub fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.manager = self.manager.max_waiters(max_waiters);
        self
    }

    async fn run(self) -> Result<LockManager, Error> {
        let backend = self.backend().await?;
        self.manager.build(backend)
    }

    async fn backend(&self) -> Result<LockService, Error> {
        let settings = Settings::of(&self.url)?;
        let url = settings.url.as_str();
        let (scheme, _) = url.split_once(':').ok_or_else(|| {
            connect_error(
                ErrorKind::InvalidInput,
                "not a URL, such as redis://127.0.0.1:6379",
            )
        })?;
        // One with options of its own, of which these three are ours to give.
        #[cfg(any(
            feature = "etcd",
            feature = "redis",
            feature = "redlock",
            feature = "zookeeper"
        ))]
        macro_rules! connected {
            ($backend:ty, $options:ty) => {{
                let prefix = self.prefix.clone().or(settings.prefix);
                let options = <$options>::default()
                    .prefix(
                        prefix.unwrap_or_else(|| lock_core::backend::support::PREFIX.to_owned()),
                    )
                    .initial_token(self.initial_token);
                let options = match self.response_timeout.or(settings.response_timeout) {
                    Some(timeout) => options.response_timeout(timeout),
                    None => options,
                };
                let clock = Arc::clone(&self.clock);
                Ok(<$backend>::connect(url, options, clock).await?.into())
            }};
        }

        match scheme {
            "memory" => {
                let clock = Arc::clone(&self.clock);
                Ok(MemoryBackend::new(clock, self.initial_token).into())
            }
            #[cfg(feature = "redis")]
            "redis" | "redis+sentinel" | "redis+cluster" | "rediss" | "rediss+sentinel"
            | "rediss+cluster" => {
                connected!(crate::redis::RedisBackend, crate::redis::RedisOptions)
            }
            #[cfg(feature = "redlock")]
            "redlock+redis" | "redlock+rediss" => {
                connected!(
                    crate::redlock::RedlockBackend,
                    crate::redlock::RedlockOptions
                )
            }
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => connected!(crate::etcd::EtcdBackend, crate::etcd::EtcdOptions),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => self.postgres(url, &settings).await,
            #[cfg(feature = "zookeeper")]
            "zookeeper" => connected!(
                crate::zookeeper::ZooKeeperBackend,
                crate::zookeeper::ZooKeeperOptions
            ),
            scheme => Err(unsupported(scheme, url)),
        }
    }

    /// A database is a name space of its own, and its clock is where tokens start.
    #[cfg(feature = "postgres")]
    async fn postgres(&self, url: &str, settings: &Settings) -> Result<LockService, Error> {
        use crate::postgres::{PostgresBackend, PostgresOptions};

        if self.prefix.is_some() || settings.prefix.is_some() {
            let why = "postgres: has no prefix; use another database";
            return Err(connect_error(ErrorKind::InvalidInput, why));
        }
        if self.initial_token != InitialToken::Clock {
            let why = "postgres: tokens start at the clock of the database";
            return Err(connect_error(ErrorKind::Unsupported, why));
        }
        let options = PostgresOptions::default();
        let options = match self.response_timeout.or(settings.response_timeout) {
            Some(timeout) => options.response_timeout(timeout),
            None => options,
        };
        let clock = Arc::clone(&self.clock);
        Ok(PostgresBackend::connect(url, options, clock).await?.into())
    }
}

impl IntoFuture for Connect {
    type Output = Result<LockManager, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Without the URL, which may contain a password.
impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("prefix", &self.prefix)
            .field("response_timeout", &self.response_timeout)
            .field("initial_token", &self.initial_token)
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

fn unsupported(scheme: &str, url: &str) -> Error {
    let feature = match scheme {
        "postgres" | "postgresql" => "postgres",
        "redis" | "redis+sentinel" | "redis+cluster" => "redis",
        "rediss" | "rediss+sentinel" | "rediss+cluster" => "redis-tls",
        "redlock+redis" | "redlock+rediss" => "redlock",
        "zookeeper" => "zookeeper",
        "etcd" => "etcd",
        "etcds" => "etcd-tls",
        _ => {
            let detail = format!(
                "no lock service has the scheme {scheme:?}; {}there are memory:, etcd:, etcds:, \
                 postgres:, redis:, rediss:, these last two with +sentinel or +cluster, \
                 redlock+redis:, redlock+rediss: and zookeeper:",
                meant(scheme, url).unwrap_or_default(),
            );
            return connect_error(ErrorKind::Unsupported, &detail);
        }
    };
    let detail =
        format!("{scheme}: needs the feature `{feature}` of palisade, which is not compiled in");
    connect_error(ErrorKind::Unsupported, &detail)
}

/// The URL that the name of a client library, or a host and port without a scheme, probably stands
/// for. Any other text is not repeated, as it may contain a password.
fn meant(scheme: &str, url: &str) -> Option<String> {
    if let "unix" | "redis+unix" | "redis+socket" = scheme {
        let why = "a Unix socket is none of ours, give Redis a port and use redis://; ";
        return Some(why.to_owned());
    }
    if let Some((scheme @ ("postgres" | "postgresql"), _)) = scheme.split_once('+') {
        return Some(format!("did you mean {scheme}://? Otherwise, "));
    }
    let (host, port) = url.split_once(':')?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let scheme = match port.parse().ok()? {
        2379_u16 => "etcd",
        2181 => "zookeeper",
        5432 => "postgres",
        _ => "redis",
    };
    host.bytes()
        .all(is_host)
        .then(|| format!("did you mean {scheme}://{host}:{port}? Otherwise, "))
}

fn connect_error(kind: ErrorKind, detail: &str) -> Error {
    Error::not_applied(kind)
        .during(Operation::Connect, OURSELVES)
        .because(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(url: &str) -> String {
        connect(url).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn an_address_without_a_scheme_is_told_what_it_may_have_meant() {
        for (url, meant) in [
            ("localhost:6379", "redis://localhost:6379"),
            ("127.0.0.1:7000", "redis://127.0.0.1:7000"),
            ("etcd-1.example:2379", "etcd://etcd-1.example:2379"),
            ("zoo:2181", "zookeeper://zoo:2181"),
        ] {
            let said = refusal(url).await;
            assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
        }
        for url in ["user:hunter2@host:6379", "http://host:6379", "host:70000"] {
            let said = refusal(url).await;
            assert!(!said.contains("did you mean"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_url_that_names_no_lock_service_is_refused() {
        for (url, kind, says) in [
            ("", ErrorKind::InvalidInput, "not a URL"),
            ("localhost:6379", ErrorKind::Unsupported, "localhost"),
            ("consul://h", ErrorKind::Unsupported, "consul"),
            ("redis+unix:///s", ErrorKind::Unsupported, "Unix socket"),
            ("unix:///s", ErrorKind::Unsupported, "Unix socket"),
            (
                "postgresql+psycopg2://h/db",
                ErrorKind::Unsupported,
                "did you mean postgresql://?",
            ),
        ] {
            let error = connect(url).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{url:?}: {error}");
            let said = error.to_string();
            assert!(said.contains(says), "{url:?}: {said}");
            assert!(!said.contains("not compiled in"), "{url:?}: {said}");
        }
    }

    #[test]
    fn what_is_shown_of_a_connection_is_no_password() {
        let shown = format!("{:?}", connect("redis://user:hunter2@host"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
