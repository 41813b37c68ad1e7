use std::{fmt, future::IntoFuture, sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind, InitialToken, Issuer, LockManager, LockManagerBuilder, Operation, Ttl,
    backend::{BoxFuture, ConnectOptions, LockService, Runtime, TokioRuntime, support::OURSELVES},
    memory::MemoryBackend,
};

/// Connects to the lock service that the URL names.
///
/// | URL | feature | lock service |
/// |---|---|---|
/// | `memory:` | | in this process, shared only by this manager and its clones |
/// | `mysql://SERVER/DATABASE`, `mariadb` | `mysql` | MySQL 8.0.29 or MariaDB 10.6, or newer |
/// | `postgres://SERVER/DATABASE` | `postgres` | a PostgreSQL database, 12 or newer |
/// | `redis://SERVER` | `redis` | one Redis server, 7.0 or newer |
/// | `redis+sentinel://SENTINELS/NAME` | `redis` | the primary that the sentinels call `NAME` |
/// | `redis+cluster://NODES` | `redis` | a Redis Cluster; list some of its nodes |
/// | `redlock+redis://SERVER,SERVER,SERVER` | `redlock` | independent Redis servers |
/// | `rediss`, `rediss+sentinel`, .. `redlock+rediss` | `redis-tls` | the same over TLS |
/// | `sqlite:FILE` | `sqlite` | a file of SQLite, for the processes of one host |
/// | `etcd://NODES` | `etcd` | etcd, 3.4 or newer: one node, or some nodes of a cluster |
/// | `etcds` | `etcd-tls` | the same over TLS |
/// | `zookeeper://SERVERS/CHROOT` | `zookeeper` | a ZooKeeper ensemble, 3.5 or newer |
///
/// `SERVER` is `[user:password@]host[:port][/db]`. `SENTINELS` and `NODES` are hosts separated by
/// commas, such as `user:password@a:7000,b:7000`. User and password belong to the servers that keep
/// the locks; `NAME` may be followed by `/db`.
///
/// Parameters of the URLs with TLS: `tls_ca`, `tls_cert` and `tls_key` name files in PEM format
/// (the authority to trust instead of the system's, and the client's own certificate and key).
/// The first connection to Redis over TLS installs *ring* as rustls's provider of cryptography
/// for the whole process, unless the program has installed one before.
///
/// `sentinel_user` and `sentinel_password` are the login for the sentinels. `SERVERS` of ZooKeeper
/// is `[user:password@]host[:port],..`. A URL of Postgres names one host.
///
/// Each URL may have `prefix` and `response_timeout_ms`, as in
/// `redis://host?prefix=jobs&response_timeout_ms=500`; a [setter](ConnectOptions) overrides them.
/// Other parameters belong to one lock service, whose crate describes them: `shards`, `replicas`
/// and `replicas_ms` of Redis; `session_ms` of ZooKeeper; `listen`, `connections` and the
/// parameters of sqlx for Postgres; the parameters of sqlx for SQLite. An unknown parameter is
/// refused, so that a misspelt `sslmode` is not ignored.
///
/// Reserved characters in user, password or name must be percent-encoded, such as `%40` for `@`.
///
/// Each call with `memory:` makes a lock service of its own, inside the manager and its clones:
/// managers of separate calls do not exclude each other. To share one lock service, give clones of
/// one [`MemoryBackend`] to [`LockManagerBuilder::build`].
///
/// # Errors
/// [`ErrorKind::Unsupported`] for a scheme that is unknown or whose feature is not compiled in,
/// [`ErrorKind::InvalidInput`] for an invalid URL or setting, [`ErrorKind::Unavailable`] if no
/// server answers, [`ErrorKind::ConfigMismatch`] if other clients use the lock service with other
/// settings.
///
/// # Panics
/// If it is awaited outside a Tokio runtime. The watchdog needs that runtime as long as the manager
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
pub fn connect(to: impl Into<ConnectOptions>) -> Connect {
    Connect {
        to: to.into(),
        runtime: Arc::new(TokioRuntime),
        manager: LockManager::builder(),
    }
}

/// A connection that is being prepared, with its settings: see [`connect`]. Await it.
#[derive(Clone)]
#[must_use = "nothing is connected until this is awaited"]
pub struct Connect {
    to: ConnectOptions,
    runtime: Arc<dyn Runtime>,
    manager: LockManagerBuilder,
}

impl Connect {
    /// See [`ConnectOptions::prefix`].
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.to = self.to.prefix(prefix);
        self
    }

    /// See [`ConnectOptions::response_timeout`].
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.to = self.to.response_timeout(timeout);
        self
    }

    /// See [`ConnectOptions::initial_token`]. A lock service in a database refuses any other than
    /// the clock.
    pub fn initial_token(mut self, initial: InitialToken) -> Self {
        self.to = self.to.initial_token(initial);
        self
    }

    /// See [`LockManagerBuilder::issuer`].
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.manager = self.manager.issuer(issuer);
        self
    }

    /// The source of time and of chance of the lock service. Its clock counts waits and leases.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = runtime;
        self
    }

    /// Connects, and puts the lock service in front of this store. Missing migrations of the store
    /// are applied. If the role may not apply migrations, none may be missing.
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
        let (to, runtime) = (self.to.clone(), Arc::clone(&self.runtime));
        let url = self.to.url();
        let (scheme, _) = url.split_once(':').ok_or_else(|| {
            let why = "not a URL, such as redis://127.0.0.1:6379";
            connect_error(ErrorKind::InvalidInput, why)
        })?;
        Ok(match scheme {
            "memory" => memory(&to, runtime)?.into(),
            #[cfg(feature = "redis")]
            "redis" | "redis+sentinel" | "redis+cluster" | "rediss" | "rediss+sentinel"
            | "rediss+cluster" => crate::redis::RedisBackend::connect(to, runtime)
                .await?
                .into(),
            #[cfg(feature = "redlock")]
            "redlock+redis" | "redlock+rediss" => {
                crate::redlock::RedlockBackend::connect(to, runtime)
                    .await?
                    .into()
            }
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => crate::etcd::EtcdBackend::connect(to, runtime).await?.into(),
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => crate::mysql::MySqlBackend::connect(to, runtime)
                .await?
                .into(),
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => crate::postgres::PostgresBackend::connect(to, runtime)
                .await?
                .into(),
            #[cfg(feature = "sqlite")]
            "sqlite" => crate::sqlite::SqliteBackend::connect(to, runtime)
                .await?
                .into(),
            #[cfg(feature = "zookeeper")]
            "zookeeper" => crate::zookeeper::ZooKeeperBackend::connect(to, runtime)
                .await?
                .into(),
            scheme => return Err(unsupported(scheme, url)),
        })
    }
}

/// A lock service in memory, which answers at once. Each one is a name space of its own.
fn memory(to: &ConnectOptions, runtime: Arc<dyn Runtime>) -> Result<MemoryBackend, Error> {
    let settings = to.read(Duration::from_secs(1), Duration::ZERO..=Duration::MAX);
    let checked = settings.and_then(|settings| {
        settings.none_left("")?;
        Ok(MemoryBackend::new(runtime, settings.initial_token))
    });
    checked.map_err(|error| error.during(Operation::Connect, "memory"))
}

impl IntoFuture for Connect {
    type Output = Result<LockManager, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("to", &self.to)
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

fn unsupported(scheme: &str, url: &str) -> Error {
    let feature = match scheme {
        "mysql" | "mariadb" => "mysql",
        "postgres" | "postgresql" => "postgres",
        "redis" | "redis+sentinel" | "redis+cluster" => "redis",
        "rediss" | "rediss+sentinel" | "rediss+cluster" => "redis-tls",
        "redlock+redis" | "redlock+rediss" => "redlock",
        "sqlite" => "sqlite",
        "zookeeper" => "zookeeper",
        "etcd" => "etcd",
        "etcds" => "etcd-tls",
        _ => {
            let detail = format!(
                "no lock service has the scheme {scheme:?}; {}there are memory:, etcd:, etcds:, \
                 mariadb:, mysql:, postgres:, redis:, rediss:, these last two with +sentinel or \
                 +cluster, redlock+redis:, redlock+rediss:, sqlite: and zookeeper:",
                meant(scheme, url).unwrap_or_default(),
            );
            return connect_error(ErrorKind::Unsupported, &detail);
        }
    };
    let detail =
        format!("{scheme}: needs the feature `{feature}` of palisade, which is not compiled in");
    connect_error(ErrorKind::Unsupported, &detail)
}

/// The URL that is probably meant by the name of a client library, or by a host and port without a
/// scheme. Any other text is not repeated, because it may contain a password.
fn meant(scheme: &str, url: &str) -> Option<String> {
    if let "unix" | "redis+unix" | "redis+socket" = scheme {
        let why = "a Unix socket is not supported, give Redis a port and use redis://; ";
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
        3306 => "mysql",
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
    use lock_core::FencingToken;

    use super::*;

    async fn refusal(url: &str) -> String {
        connect(url).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_error_for_an_address_without_a_scheme_suggests_one() {
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

    /// `memory:` refuses a bad prefix, too, although it does not use one.
    #[tokio::test]
    async fn a_bad_prefix_is_refused_for_every_url_by_the_same_error() {
        for url in [
            "memory:",
            #[cfg(feature = "redis")]
            "redis://h",
            #[cfg(feature = "redis")]
            "redis+cluster://h",
            #[cfg(feature = "redlock")]
            "redlock+redis://a,b,c",
            #[cfg(feature = "etcd")]
            "etcd://h",
            #[cfg(feature = "postgres")]
            "postgres://h/db",
            #[cfg(feature = "sqlite")]
            "sqlite:h",
            #[cfg(feature = "zookeeper")]
            "zookeeper://h",
        ] {
            for bad in ["", ".", "a/b", "a b"] {
                let error = connect(url).prefix(bad).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}: {error}");
                let said = error.to_string();
                assert!(said.contains("a prefix is 1 to 64"), "{url}: {said}");
            }
            let said = refusal(&format!("{url}?prefix=a%2Fb")).await;
            assert!(said.contains("a prefix is 1 to 64"), "{url}: {said}");
            let said = refusal(&format!("{url}?prefixes=a")).await;
            assert!(said.contains("no parameter \"prefixes\""), "{url}: {said}");
        }
    }

    #[tokio::test]
    async fn memory_takes_the_settings_of_all() {
        let first = FencingToken::new(7).unwrap();
        let locks = connect("memory:?prefix=jobs&response_timeout_ms=500")
            .initial_token(InitialToken::At(first))
            .await
            .unwrap();
        assert_eq!(locks.acquire("r").await.unwrap().token(), first);
    }

    #[test]
    fn the_debug_text_of_a_connection_shows_no_password() {
        let shown = format!("{:?}", connect("redis://user:hunter2@host"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
