//! The URL of a lock service.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use lock_core::{
    Error,
    support::connecting::{Parts, address, invalid},
};

const PORT: u16 = 2181;

/// What the URL of a lock service says. Its `Debug` shows no password.
pub(super) struct ServiceUrl {
    /// Hosts and ports with commas between, as the client library wants them.
    pub(super) servers: String,
    /// Empty, or it begins with a slash.
    pub(super) chroot: String,
    /// `user:password`.
    pub(super) login: Option<String>,
    pub(super) session_timeout: Option<Duration>,
}

impl ServiceUrl {
    /// Reads `zookeeper://[user:password@]host[:port],..[/chroot][?session_ms=..]`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let parts = Parts::of(text).filter(|parts| parts.scheme == "zookeeper");
        let mut parts =
            parts.ok_or_else(|| invalid("not a URL, such as zookeeper://127.0.0.1:2181"))?;
        let user = std::mem::take(&mut parts.user).strip_suffix('@');
        let urls = parts.urls()?;
        let servers = urls.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            servers: servers.join(","),
            chroot: chroot(&urls[0])?,
            login: user.map(login).transpose()?,
            session_timeout: session_timeout(&urls[0])?,
        })
    }
}

impl std::fmt::Debug for ServiceUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceUrl")
            .field("servers", &self.servers)
            .field("chroot", &self.chroot)
            .field("session_timeout", &self.session_timeout)
            .finish_non_exhaustive()
    }
}

fn server(url: &Url) -> Result<String, Error> {
    let (host, port) = address(url, PORT)?;
    Ok(format!("{host}:{port}"))
}

fn chroot(url: &Url) -> Result<String, Error> {
    let path = url.path().trim_end_matches('/');
    let parts = path.split('/').skip(1);
    let plain = |part: &str| !part.is_empty() && !part.contains('%');
    if !parts.clone().all(plain) || parts.clone().next() == Some("zookeeper") {
        return Err(invalid("the path of the URL is no directory to work in"));
    }
    Ok(path.to_owned())
}

fn login(user: &str) -> Result<String, Error> {
    let wrong = || invalid("a login is user:password");
    let login = percent_decode_str(user).decode_utf8();
    let login = login.map_err(|_| wrong())?.into_owned();
    match login.split_once(':') {
        Some((name, password)) if !name.is_empty() && !password.is_empty() => Ok(login),
        _ => Err(wrong()),
    }
}

fn session_timeout(url: &Url) -> Result<Option<Duration>, Error> {
    let mut timeout = None;
    for (name, value) in url.query_pairs() {
        if name != "session_ms" {
            let why = format!("this scheme has no parameter {name:?}; there is session_ms");
            return Err(invalid(why));
        }
        let millis = value.parse();
        let millis = millis.map_err(|_| invalid("session_ms is a number of milliseconds"))?;
        timeout = Some(Duration::from_millis(millis));
    }
    Ok(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_servers_and_where_to_work() {
        let url = ServiceUrl::parse("zookeeper://a").unwrap();
        assert_eq!((url.servers.as_str(), url.chroot.as_str()), ("a:2181", ""));
        assert_eq!((url.login, url.session_timeout), (None, None));
        let url = "zookeeper://u:p%40ss@a:1,[::1],c:3/app/locks/?session_ms=4000";
        let url = ServiceUrl::parse(url).unwrap();
        assert_eq!(url.servers, "a:1,[::1]:2181,c:3");
        assert_eq!(url.chroot, "/app/locks");
        assert_eq!(url.login.as_deref(), Some("u:p@ss"));
        assert_eq!(url.session_timeout, Some(Duration::from_secs(4)));
    }

    #[test]
    fn what_cannot_be_right_is_told_without_the_password() {
        for (url, says) in [
            ("zookeeper:h", "not a URL"),
            ("zookeeper://u:sesame@", "host is missing"),
            ("zookeeper://u:sesame@h:x", "cannot be read"),
            ("zookeeper://u:sesame@a,,b", "host is missing"),
            ("zookeeper://sesame@h", "user:password"),
            ("zookeeper://u:sesame@h/a//b", "directory"),
            ("zookeeper://u:sesame@h/zookeeper", "directory"),
            ("zookeeper://u:sesame@h?session_ms=x", "session_ms"),
            ("zookeeper://u:sesame@h?timeout=5", "timeout"),
            ("zookeeper://u:sesame@h#insecure", "fragment"),
        ] {
            let error = ServiceUrl::parse(url).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
        let read = ServiceUrl::parse("zookeeper://u:sesame@h").unwrap();
        assert!(!format!("{read:?}").contains("sesame"));
    }
}
