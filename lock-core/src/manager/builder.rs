use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{LockManager, settings::Defaults};
use crate::{
    Clock, Cohort, Error, ErrorKind, Extension, InitialToken, Issuer, LockBackend, Operation,
    SystemClock, Ttl, backends::PREFIX, error::OURSELVES,
};

/// Settings of a [`LockManager`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct LockManagerBuilder {
    issuer: Option<Issuer>,
    clock: Arc<dyn Clock>,
    initial_token: InitialToken,
    prefix: String,
    /// Whether one of these two was set. A backend that is given to `build` has its own.
    is_about_backend: bool,
    passes: Option<NonZeroU32>,
    defaults: Defaults,
}

impl LockManagerBuilder {
    /// Names the lock service for the store. Defaults to the kind of backend, such as `redis`.
    ///
    /// Give every lock service a name of its own if one store is guarded by several.
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuer = Some(issuer);
        self
    }

    /// The clock used for deadlines. Defaults to [`SystemClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where a missing token counter starts. Defaults to the lock service's wall clock.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self.is_about_backend = true;
        self
    }

    /// The prefix of all keys at a lock service; in a ZooKeeper ensemble, the directory. Defaults
    /// to `palisade`.
    ///
    /// Managers with different prefixes do not see each other's locks. At most 64 letters, digits
    /// and `-._:`; anything else is an error when connecting.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self.is_about_backend = true;
        self
    }

    /// Puts the waiters of this manager into one line, and passes the lock on among them without
    /// asking the lock service, up to this many grants in a row: see [`Cohort`], whose
    /// [`PASSES`](Cohort::PASSES) is a good number. Defaults to off: first come, first served.
    ///
    /// Useful for a resource that many tasks of one process contend for. Hand-offs inside the
    /// process are some twenty times faster; waiters of other processes are overtaken by up to that
    /// many grants. The lock service has to [reserve](crate::Extension::Reserve) tokens: over one
    /// that cannot, connecting and building are [`Unsupported`](ErrorKind::Unsupported).
    pub const fn cohort(mut self, passes: NonZeroU32) -> Self {
        self.passes = Some(passes);
        self
    }

    /// The ttl of leases, unless the acquisition says otherwise; see
    /// [`Acquire::ttl`](crate::Acquire::ttl). Defaults to 10 s.
    ///
    /// It is also that of acquisitions that cannot say so, such as
    /// [`try_acquire`](LockManager::try_acquire) and [`run`](LockManager::run).
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.defaults.ttl = ttl;
        self
    }

    /// How long the watchdog keeps a lease up, unless the acquisition says otherwise; see
    /// [`Acquire::max_hold`](crate::Acquire::max_hold). Defaults to no bound.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.defaults.max_hold = Some(max_hold);
        self
    }

    /// The greatest number of waiters for one resource, unless the acquisition says otherwise; see
    /// [`Acquire::max_waiters`](crate::Acquire::max_waiters). Defaults to no bound.
    pub const fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.defaults.max_waiters = Some(max_waiters);
        self
    }

    /// Connects to the lock service that the URL names.
    ///
    /// | URL | feature | lock service |
    /// |---|---|---|
    /// | `memory:` | `memory` | in this process, shared by this manager and its clones only |
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
    /// Reserved characters in user, password or name must be percent-encoded, e.g. `%40` for `@`.
    ///
    /// Each call with `memory:` makes a lock service of its own, inside the manager and its clones:
    /// managers that were connected by separate calls do not exclude each other. To share one
    /// service, give an `Arc` of one [`MemoryBackend`](crate::memory::MemoryBackend) to the
    /// [`build`](Self::build) of each manager.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a scheme that is unknown or whose feature is not compiled in,
    /// [`ErrorKind::InvalidInput`] for an invalid URL or setting, [`ErrorKind::Unavailable`] if no
    /// server answers, [`ErrorKind::ConfigMismatch`] if other clients use the lock service with
    /// other settings.
    ///
    /// # Panics
    /// Outside a Tokio runtime, which the watchdog needs for as long as the manager is used.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    pub async fn connect(self, url: &str) -> Result<LockManager, Error> {
        let backend = self.backend(url).await?;
        self.over(backend)
    }

    /// Makes a manager for a backend that exists already: one of ours with options that a URL
    /// cannot give, one that several managers share, or your own. The backend has to use the same
    /// clock.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if a prefix or an initial token was set, because these belong to
    /// the backend's own options; or if no issuer was set and the backend's kind is not an issuer
    /// name.
    ///
    /// # Panics
    /// Outside a Tokio runtime, which the watchdog needs for as long as the manager is used.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::{sync::Arc, time::Duration};
    ///
    /// use lock_core::{
    ///     LockManager, SystemClock,
    ///     redis::{RedisBackend, RedisOptions},
    /// };
    ///
    /// let options = RedisOptions::default()
    ///     .prefix("billing")
    ///     .replicas(1, Duration::from_millis(50));
    /// let clock = Arc::new(SystemClock);
    /// let backend = RedisBackend::connect("redis://127.0.0.1", options, clock).await?;
    /// let locks = LockManager::builder().build(Arc::new(backend))?;
    /// # Ok(()) }
    /// # fn main() {}
    /// ```
    pub fn build(self, backend: Arc<dyn LockBackend>) -> Result<LockManager, Error> {
        if self.is_about_backend {
            return Err(connect_error(
                ErrorKind::InvalidInput,
                "the prefix and the initial token are the backend's: give them to its options",
            ));
        }
        self.over(backend)
    }

    fn over(self, backend: Arc<dyn LockBackend>) -> Result<LockManager, Error> {
        let issuer = match self.issuer {
            Some(issuer) => issuer,
            None => Issuer::new(backend.kind())
                .map_err(|error| Error::of_name(Operation::Connect, &error))?,
        };
        let backend = match self.passes {
            Some(_) if !backend.capabilities().has(Extension::Reserve) => {
                return Err(without_reserve(backend.kind()));
            }
            Some(passes) => Arc::new(Cohort::new(backend, Arc::clone(&self.clock), passes)),
            None => backend,
        };
        Ok(LockManager::start(
            backend,
            self.clock,
            issuer,
            self.defaults,
        ))
    }

    async fn backend(&self, url: &str) -> Result<Arc<dyn LockBackend>, Error> {
        let (scheme, _) = url.split_once(':').ok_or_else(|| {
            connect_error(
                ErrorKind::InvalidInput,
                "not a URL, such as redis://127.0.0.1:6379",
            )
        })?;
        // One with options of its own, of which these two are ours to give.
        #[cfg(any(feature = "etcd", feature = "redis", feature = "zookeeper"))]
        macro_rules! connected {
            ($backend:ty, $options:ty) => {{
                let options = <$options>::default()
                    .prefix(&self.prefix)
                    .initial_token(self.initial_token);
                let clock = Arc::clone(&self.clock);
                Ok(Arc::new(<$backend>::connect(url, options, clock).await?))
            }};
        }

        match scheme {
            #[cfg(feature = "memory")]
            "memory" => Ok(Arc::new(crate::memory::MemoryBackend::new(
                Arc::clone(&self.clock),
                self.initial_token,
            ))),
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
            #[cfg(feature = "zookeeper")]
            "zookeeper" => connected!(
                crate::zookeeper::ZooKeeperBackend,
                crate::zookeeper::ZooKeeperOptions
            ),
            scheme => Err(unsupported(scheme, url)),
        }
    }
}

impl Default for LockManagerBuilder {
    fn default() -> Self {
        Self {
            issuer: None,
            clock: Arc::new(SystemClock),
            initial_token: InitialToken::default(),
            prefix: PREFIX.to_owned(),
            is_about_backend: false,
            passes: None,
            defaults: Defaults::default(),
        }
    }
}

fn unsupported(scheme: &str, url: &str) -> Error {
    let feature = match scheme.split('+').next() {
        Some("memory") => "memory",
        Some("redis") => "redis",
        Some("rediss") => "redis-tls",
        Some("redlock") => "redlock",
        Some("zookeeper") => "zookeeper",
        Some("etcd") => "etcd",
        Some("etcds") => "etcd-tls",
        _ => {
            let detail = format!(
                "no lock service has the scheme {scheme:?}; {}there are memory:, etcd:, etcds:, \
                 redis:, rediss:, these last two with +sentinel or +cluster, redlock+redis:, \
                 redlock+rediss: and zookeeper:",
                meant(url).unwrap_or_default(),
            );
            return connect_error(ErrorKind::Unsupported, &detail);
        }
    };
    let detail =
        format!("{scheme}: needs the feature `{feature}` of lock-core, which is not compiled in");
    connect_error(ErrorKind::Unsupported, &detail)
}

/// The URL that a host and port without a scheme probably stand for. Any other text is not
/// repeated, as it may contain a password.
fn meant(url: &str) -> Option<String> {
    let (host, port) = url.split_once(':')?;
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let scheme = match port.parse().ok()? {
        2379_u16 => "etcd",
        2181 => "zookeeper",
        _ => "redis",
    };
    host.bytes()
        .all(is_host)
        .then(|| format!("did you mean {scheme}://{host}:{port}? Otherwise, "))
}

/// A cohort would be in vain there.
fn without_reserve(backend: &'static str) -> Error {
    let error = Error::not_applied(ErrorKind::Unsupported, Operation::Connect, backend);
    error.because("this lock service cannot reserve tokens: build the manager without a cohort")
}

fn connect_error(kind: ErrorKind, detail: &str) -> Error {
    Error::not_applied(kind, Operation::Connect, OURSELVES).because(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(url: &str) -> String {
        let connected = LockManager::builder().connect(url).await;
        connected.unwrap_err().to_string()
    }

    #[cfg(feature = "memory")]
    #[tokio::test]
    async fn what_belongs_to_the_options_of_a_backend_is_not_ignored() {
        let backend = || -> Arc<dyn LockBackend> {
            Arc::new(crate::memory::MemoryBackend::new(
                Arc::new(SystemClock),
                InitialToken::default(),
            ))
        };
        for builder in [
            LockManager::builder().prefix("billing"),
            LockManager::builder().initial_token(InitialToken::Clock),
        ] {
            let error = builder.build(backend()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("options"), "{error}");
        }
        assert!(LockManager::builder().build(backend()).is_ok());
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
}
