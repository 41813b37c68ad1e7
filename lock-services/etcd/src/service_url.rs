//! The URL of a lock service.

use std::time::Duration;

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

const PORT: u16 = 2379;

/// The parts of the URL of a lock service. Its `Debug` shows no password.
#[derive(Debug)]
pub(super) struct ServiceUrl {
    /// `host:port` of each node, at least one.
    pub(super) nodes: Vec<String>,
    pub(super) login: Option<Login>,
    /// The files for TLS, if the connections to the nodes use TLS.
    pub(super) tls: Option<TlsFiles>,
}

/// Name and password.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) name: String,
    pub(super) password: String,
}

impl ServiceUrl {
    /// Reads the URL. The bounds of the response timeout leave a renewal the time to ask a second
    /// node.
    pub(super) fn read(options: &ConnectOptions) -> Result<(Self, Settings), Error> {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(3);
        let mut settings = options.read(Duration::from_secs(2), bounds)?;
        let url = connecting::ServiceUrl::parse(&settings.server, "etcd://127.0.0.1:2379")?;
        let tls = match &*url.scheme {
            "etcd" => false,
            "etcds" => true,
            _ => {
                let error = Error::not_applied(ErrorKind::Unsupported);
                return Err(error.because("a scheme is etcd or etcds"));
            }
        };
        if !matches!(&*url.path, "" | "/") {
            return Err(invalid("the URL has no use for a path"));
        }
        let tls = tls.then(|| TlsFiles::take(&mut settings)).transpose()?;
        settings.none_left("tls_ca, tls_cert and tls_key with etcds")?;
        let node =
            |(host, port): &(String, Option<u16>)| format!("{host}:{}", port.unwrap_or(PORT));
        let url = Self {
            nodes: url.hosts.iter().map(node).collect(),
            login: url
                .login()?
                .map(|(name, password)| Login { name, password }),
            tls,
        };
        Ok((url, settings))
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<ServiceUrl, Error> {
        let (url, _) = ServiceUrl::read(&url.into())?;
        Ok(url)
    }

    /// Catches: a name or a password with an escape, and an IPv6 address.
    #[test]
    fn a_url_names_nodes() {
        for (url, nodes) in [
            ("etcd://h", "h:2379"),
            ("etcd://h:21/", "h:21"),
            ("etcd://a:1,b,[::1]:3", "a:1 b:2379 [::1]:3"),
            ("etcd://u:p@a:1,b", "a:1 b:2379"),
            ("etcds://a?tls_ca=f", "a:2379"),
        ] {
            assert_eq!(read(url).unwrap().nodes.join(" "), nodes, "{url}");
        }
        let tls = "etcds://u%40x:p+%2F@a?tls_ca=f&tls_cert=c&tls_key=k";
        let url = read(tls).unwrap();
        let login = url.login.unwrap();
        assert_eq!((&*login.name, &*login.password), ("u@x", "p+/"));
        let files = r#"ca: Some("f"), certificate: Some("c"), key: Some("k")"#;
        let tls = format!("{:?}", url.tls);
        assert!(tls.contains(files), "{tls}");
    }

    /// Catches: a part of a URL that would have no effect is ignored, or the error shows the
    /// password.
    #[test]
    fn the_error_for_a_wrong_url_shows_no_password() {
        for (url, says) in [
            ("etcd:h", "not a URL"),
            ("etcd://u:sesame@", "cannot be read"),
            ("etcd://u:sesame@h:x", "cannot be read"),
            ("etcd://u:sesame@a,,b", "cannot be read"),
            ("etcd://:sesame@h", "only one of user and password"),
            ("etcd://u@h", "only one of user and password"),
            ("etcd://u:sesame@h/x", "path"),
            ("etcd://u:sesame@h?tls_ca=f", "tls_ca"),
            ("etcds://u:sesame@h?timeout=5", "timeout"),
            ("etcd://u:sesame@h#insecure", "fragment"),
            ("etcd+ring://u:sesame@h", "etcds"),
        ] {
            let error = read(url).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
        let url = read("etcd://u:sesame@h").unwrap();
        assert!(!format!("{url:?}").contains("sesame"));
    }
}
