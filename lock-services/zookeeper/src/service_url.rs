//! The URL of a lock service.

use std::time::Duration;

use lock_core::{
    Error,
    backend::{
        ConnectOptions,
        support::connecting::{self, Settings, invalid},
    },
};

const PORT: u16 = 2181;

/// The settings in the URL of a lock service. Its `Debug` shows no password.
pub(super) struct ServiceUrl {
    /// Hosts and ports, separated by commas, as the client library needs them.
    pub(super) servers: String,
    /// Empty, or it begins with a slash.
    pub(super) chroot: String,
    /// `user:password`.
    pub(super) login: Option<String>,
    pub(super) session_timeout: Duration,
}

impl ServiceUrl {
    /// Reads `zookeeper://[user:password@]host[:port],..[/chroot][?session_ms=..]`.
    pub(super) fn read(options: &ConnectOptions) -> Result<(Self, Settings), Error> {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(60);
        let mut settings = options.read(Duration::from_secs(5), bounds)?;
        let example = "zookeeper://127.0.0.1:2181";
        let url = connecting::ServiceUrl::parse(&settings.server, example)?;
        if url.scheme != "zookeeper" {
            return Err(invalid(format!("not a URL, such as {example}")));
        }
        let session_timeout = settings.take_millis("session_ms")?;
        let session_timeout = session_timeout.unwrap_or(Duration::from_secs(30));
        let allowed = Duration::from_millis(100)..=Duration::from_secs(24 * 60 * 60);
        if !allowed.contains(&session_timeout) {
            return Err(invalid("a session is 100 ms to 24 h long"));
        }
        settings.none_left("session_ms")?;
        let servers = url.hosts.iter();
        let servers = servers.map(|(host, port)| format!("{host}:{}", port.unwrap_or(PORT)));
        let login = url.login()?;
        let url = Self {
            servers: servers.collect::<Vec<_>>().join(","),
            chroot: chroot(&url.path)?,
            login: login.map(|(user, password)| format!("{user}:{password}")),
            session_timeout,
        };
        Ok((url, settings))
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

fn chroot(path: &str) -> Result<String, Error> {
    let path = path.trim_end_matches('/');
    let parts = path.split('/').skip(1);
    let plain = |part: &str| !part.is_empty() && !part.contains('%');
    if !parts.clone().all(plain) || parts.clone().next() == Some("zookeeper") {
        return Err(invalid("the path of the URL is no directory to work in"));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<ServiceUrl, Error> {
        let (url, _) = ServiceUrl::read(&url.into())?;
        Ok(url)
    }

    /// Catches: a password with an escape, and a chroot that ends with a slash.
    #[test]
    fn a_url_names_servers_and_where_to_work() {
        let url = read("zookeeper://a").unwrap();
        assert_eq!((url.servers.as_str(), url.chroot.as_str()), ("a:2181", ""));
        let usual = Duration::from_secs(30);
        assert_eq!((url.login, url.session_timeout), (None, usual));
        let url = "zookeeper://u:p%40ss@a:1,[::1],c:3/app/locks/?session_ms=4000";
        let url = read(url).unwrap();
        assert_eq!(url.servers, "a:1,[::1]:2181,c:3");
        assert_eq!(url.chroot, "/app/locks");
        assert_eq!(url.login.as_deref(), Some("u:p@ss"));
        assert_eq!(url.session_timeout, Duration::from_secs(4));
    }

    /// Catches: a part of a URL that would have no effect is ignored, or the error shows the
    /// password.
    #[test]
    fn the_error_for_a_wrong_url_shows_no_password() {
        for (url, says) in [
            ("zookeeper:h", "not a URL"),
            ("zookeeper://u:sesame@", "cannot be read"),
            ("zookeeper://u:sesame@h:x", "cannot be read"),
            ("zookeeper://u:sesame@a,,b", "cannot be read"),
            ("zookeeper://a,,b", "host is missing"),
            ("zookeeper://sesame@h", "only one of user and password"),
            ("zookeeper://u:sesame@h/a//b", "directory"),
            ("zookeeper://u:sesame@h/zookeeper", "directory"),
            ("zookeeper://u:sesame@h?session_ms=x", "session_ms"),
            ("zookeeper://u:sesame@h?session_ms=99", "100 ms to 24 h"),
            ("zookeeper://u:sesame@h?timeout=5", "timeout"),
            ("zookeeper://u:sesame@h#insecure", "fragment"),
        ] {
            let error = read(url).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
        let url = read("zookeeper://u:sesame@h").unwrap();
        assert!(!format!("{url:?}").contains("sesame"));
    }
}
