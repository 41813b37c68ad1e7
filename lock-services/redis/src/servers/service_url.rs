//! The URL of a lock service.

use std::time::Duration;

use redis::{ConnectionAddr, RedisConnectionInfo};

use super::{
    address::{Access, Address},
    tls,
};
use crate::options::Options;
use lock_core::{
    Error, ErrorKind,
    backend::{
        ConnectOptions,
        support::{
            connecting::{self, Settings, invalid},
            tls_files::TlsFiles,
        },
    },
};

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The relation between the servers of a lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server.
    Standalone,
    /// A primary that sentinels name.
    Sentinel,
    /// Several primaries, each with some of the shards.
    Cluster,
    /// One of several servers that know nothing of each other. No scheme says so.
    Independent,
}

/// The parts of the URL of a lock service. Its `Debug` shows no password.
#[derive(Debug)]
pub(crate) struct ServiceUrl {
    pub(crate) topology: Topology,
    /// The addresses of the servers, or of the sentinels if the topology is `Sentinel`. There is at
    /// least one.
    pub(crate) addresses: Vec<Address>,
    /// The sentinels' name for the primary.
    pub(crate) primary_name: String,
    pub(crate) servers: Access,
    pub(crate) sentinels: Access,
    pub(crate) response_timeout: Duration,
}

impl ServiceUrl {
    /// Reads a URL, and the files that it names.
    ///
    /// The keepalive of connections lasts twice the response timeout. Operating systems bound this
    /// time.
    pub(crate) fn read(options: &ConnectOptions) -> Result<(Self, Options, Settings), Error> {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(60);
        let mut settings = options.read(Duration::from_secs(2), bounds)?;
        let url = connecting::ServiceUrl::parse(&settings.server, "redis://127.0.0.1:6379")?;
        let (topology, tls) = scheme_of(&url.scheme)?;
        if url.hosts.len() > 1 && topology == Topology::Standalone {
            return Err(invalid(
                "several hosts are redis+sentinel:// or redis+cluster://",
            ));
        }
        let options = Options::take(&mut settings)?;
        let url = Self::of(url, topology, tls, &mut settings)?;
        settings.none_left(
            "shards, replicas and replicas_ms, tls_ca, tls_cert and tls_key with rediss, \
             sentinel_user and sentinel_password with +sentinel",
        )?;
        Ok((url, options, settings))
    }

    /// Reads the rest of a URL whose scheme says the topology and whether there is TLS.
    pub(crate) fn of(
        url: connecting::ServiceUrl,
        topology: Topology,
        tls: bool,
        settings: &mut Settings,
    ) -> Result<Self, Error> {
        let (primary_name, database) = path(&url.path, topology)?;
        let transport = if tls {
            tls::transport(&TlsFiles::take(settings)?)?
        } else {
            ConnectionAddr::Tcp(String::new(), 0)
        };
        let sentinel_login = match topology {
            Topology::Sentinel => login(
                settings.take("sentinel_user")?.unwrap_or_default(),
                settings.take("sentinel_password")?,
            ),
            _ => RedisConnectionInfo::default(),
        };
        let login = login(url.user, url.password).set_db(database);
        let servers = Access::new(login, transport, settings.response_timeout);
        Ok(Self {
            topology,
            addresses: url
                .hosts
                .iter()
                .map(|host| address(host, topology))
                .collect(),
            primary_name,
            sentinels: servers.with_login(sentinel_login),
            servers,
            response_timeout: settings.response_timeout,
        })
    }
}

/// Topology, and whether there is TLS.
fn scheme_of(scheme: &str) -> Result<(Topology, bool), Error> {
    let (transport, topology) = scheme.split_once('+').unwrap_or((scheme, ""));
    let tls = match transport {
        "redis" => Some(false),
        "rediss" => Some(true),
        _ => None,
    };
    let topology = match topology {
        "" => Some(Topology::Standalone),
        "sentinel" => Some(Topology::Sentinel),
        "cluster" => Some(Topology::Cluster),
        _ => None,
    };
    topology.zip(tls).ok_or_else(|| {
        Error::not_applied(ErrorKind::Unsupported)
            .because("a scheme is redis or rediss, alone or with +sentinel or +cluster")
    })
}

fn address((host, port): &(String, Option<u16>), topology: Topology) -> Address {
    let default = match topology {
        Topology::Sentinel => SENTINEL_PORT,
        _ => REDIS_PORT,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Address {
        host: host.to_owned(),
        port: port.unwrap_or(default),
    }
}

/// The name of the primary, and the database.
fn path(path: &str, topology: Topology) -> Result<(String, i64), Error> {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let segments: Vec<&str> = segments.collect();
    let (name, database) = match (topology, segments[..].as_ref()) {
        (Topology::Standalone, []) | (Topology::Cluster, [] | ["0"]) => ("", "0"),
        (Topology::Standalone, [database]) => ("", *database),
        (Topology::Sentinel, [name]) => (*name, "0"),
        (Topology::Sentinel, [name, database]) => (*name, *database),
        (Topology::Sentinel, _) => {
            return Err(invalid(
                "what the sentinels call the primary is missing: \
                 redis+sentinel://host:port,host:port/name",
            ));
        }
        (Topology::Cluster, _) => return Err(invalid("a cluster has one database, number 0")),
        _ => ("", ""),
    };
    let database = database.parse();
    let database =
        database.map_err(|_| invalid("the path of the URL is the number of a database"))?;
    Ok((name.to_owned(), database))
}

fn login(user: String, password: Option<String>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default();
    if !user.is_empty() {
        login = login.set_username(user);
    }
    match password {
        Some(password) => login.set_password(password),
        None => login,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<ServiceUrl, Error> {
        let (url, ..) = ServiceUrl::read(&url.into())?;
        Ok(url)
    }

    fn addresses(url: &str) -> String {
        let url = parse(url).unwrap();
        let addresses: Vec<_> = url.addresses.iter().map(Address::to_string).collect();
        addresses.join(" ")
    }

    /// Catches: the servers' login is sent to the sentinels, or the sentinels' login to the
    /// servers.
    #[test]
    fn a_url_names_servers_or_sentinels() {
        assert_eq!(addresses("redis://h"), "h:6379");
        assert_eq!(addresses("redis://[::1]:7000/3"), "::1:7000");
        assert_eq!(addresses("redis+cluster://u:p@a:1,b,c:3"), "a:1 b:6379 c:3");
        let sentinel = "redis+sentinel://u:p@a:1,b/main/2?sentinel_user=x&sentinel_password=y";
        assert_eq!(addresses(sentinel), "a:1 b:26379");
        let read = parse(sentinel).unwrap();
        assert_eq!(read.primary_name, "main");
        let server = read.servers.client(&read.addresses[0]).unwrap();
        let login = server.get_connection_info().redis_settings();
        assert_eq!((login.username(), login.password()), (Some("u"), Some("p")));
        assert_eq!(login.db(), 2);
        let sentinel = read.sentinels.client(&read.addresses[0]).unwrap();
        let login = sentinel.get_connection_info().redis_settings();
        assert_eq!((login.username(), login.password()), (Some("x"), Some("y")));
    }

    /// Catches: a part of a URL that would have no effect is ignored, or the error shows the
    /// password.
    #[test]
    fn the_error_for_a_wrong_url_shows_no_password() {
        for (url, says) in [
            ("redis:h", "not a URL"),
            ("redis://u:sesame@", "cannot be read"),
            ("redis://u:sesame@h:x", "cannot be read"),
            ("redis://u:sesame@a,b", "several hosts"),
            ("redis://u:sesame@h/x", "database"),
            ("redis://u:sesame@h/1/2", "database"),
            ("redis://u:sesame@h?tls_ca=f", "tls_ca"),
            ("redis://u:sesame@h?timeout=5", "timeout"),
            ("redis://u:sesame@h#insecure", "fragment"),
            ("redis+sentinel://u:sesame@h", "name"),
            ("redis+cluster://u:sesame@h/1", "number 0"),
            (
                "redis+cluster://u:sesame@h?sentinel_user=u",
                "sentinel_user",
            ),
            ("redis+ring://u:sesame@h", "+cluster"),
            ("redis://u:sesame@h?shards=0", "1 to 1024 shards"),
            ("redis://u:sesame@h?shards=many", "a whole number"),
            ("redis://u:sesame@h?replicas=1", "together with replicas_ms"),
            ("redis://u:sesame@h?replicas=0&replicas_ms=9", "at least 1"),
            (
                "redis://u:sesame@h?replicas=1&replicas_ms=2000",
                "less than the response timeout",
            ),
        ] {
            let error = parse(url).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
        let read = parse("redis://u:sesame@h").unwrap();
        assert!(!format!("{read:?}").contains("sesame"));
    }
}
