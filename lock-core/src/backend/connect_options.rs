use std::{fmt, ops::RangeInclusive, time::Duration};

use url::form_urlencoded;

use super::support::{
    PREFIX,
    connecting::{Settings, invalid},
};
use crate::{Error, InitialToken};

/// The place of a lock service and the settings of its user. The options are the same for each lock
/// service.
///
/// The URL of a lock service converts into options. Its parameters stand behind `?`, as in
/// `redis://host?prefix=jobs&response_timeout_ms=500`. A setter overrides the URL. All options are
/// checked when the lock service is connected.
///
/// # Examples
/// ```
/// use lock_core::backend::ConnectOptions;
///
/// let options = ConnectOptions::from("redis://:secret@localhost").prefix("jobs");
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct ConnectOptions {
    url: String,
    /// The parameters from setters. They override the parameters of the URL.
    parameters: Vec<(String, String)>,
    initial_token: InitialToken,
}

impl ConnectOptions {
    /// The name space of the leases, `prefix` in the URL. Defaults to `palisade`.
    ///
    /// All keys at the lock service begin with the prefix. In a ZooKeeper ensemble it is the
    /// directory. In Postgres it stands before the resource; the default prefix is left out there,
    /// so that leases from SQL are in it. Each `memory:` is a name space of its own anyway.
    ///
    /// Clients with different prefixes do not see each other's leases. Marks in a store have no
    /// prefix. So applications with one store must not share a resource name: each claim of one
    /// application shuts out the holder of the other. A prefix has at most 64 letters, digits and
    /// `-._:`, and is not `.` or `..`.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        self.parameter("prefix", prefix)
    }

    /// The longest wait for a connection to a server, and for each of its answers, in whole
    /// milliseconds: `response_timeout_ms` in the URL. Each lock service has a default and bounds
    /// of its own.
    ///
    /// An answer that comes later is lost, and the outcome of the request is unknown. While a
    /// renewal waits for its answer, it is not repeated. So the lease may be lost if the timeout is
    /// longer than half of its ttl.
    pub fn response_timeout(self, timeout: Duration) -> Self {
        self.parameter("response_timeout_ms", timeout.as_millis().to_string())
    }

    /// The start of a token counter that is missing. Defaults to the lock service's wall clock.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// A parameter of the URL, decoded.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.parameters.retain(|(other, _)| *other != name);
        self.parameters.push((name, value.into()));
        self
    }

    /// The URL as it was given. It may have a password.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Reads the options that all lock services have. The lock service gives the default and the
    /// bounds of its response timeout. The parameters that are left are its own.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) says what is wrong, and shows no
    /// password.
    pub fn read(
        &self,
        default: Duration,
        bounds: RangeInclusive<Duration>,
    ) -> Result<Settings, Error> {
        if self.url.contains('#') {
            return Err(invalid(
                "the URL has a #fragment, which has no meaning here",
            ));
        }
        let (server, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let is_replaced = |name: &str| self.parameters.iter().any(|(other, _)| other == name);
        let of_url = form_urlencoded::parse(query.as_bytes()).into_owned();
        let of_url = of_url.filter(|(name, _)| !is_replaced(name));
        let mut settings = Settings {
            server: server.to_owned(),
            prefix: PREFIX.to_owned(),
            response_timeout: default,
            initial_token: self.initial_token,
            parameters: of_url.chain(self.parameters.iter().cloned()).collect(),
        };
        if let Some(prefix) = settings.take("prefix")? {
            check_prefix(&prefix)?;
            settings.prefix = prefix;
        }
        if let Some(timeout) = settings.take_millis("response_timeout_ms")? {
            settings.response_timeout = timeout;
        }
        if !bounds.contains(&settings.response_timeout) {
            let (least, most) = bounds.into_inner();
            let why = format!("a response timeout is {least:?} to {most:?}");
            return Err(invalid(why));
        }
        Ok(settings)
    }
}

fn check_prefix(prefix: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_one = (1..=64).contains(&prefix.len()) && prefix.bytes().all(plain);
    if is_one && ![".", ".."].contains(&prefix) {
        return Ok(());
    }
    Err(invalid(
        "a prefix is 1 to 64 ASCII letters, digits or -._: and not . or ..",
    ))
}

impl From<String> for ConnectOptions {
    fn from(url: String) -> Self {
        Self {
            url,
            ..Self::default()
        }
    }
}

impl From<&str> for ConnectOptions {
    fn from(url: &str) -> Self {
        url.to_owned().into()
    }
}

impl From<&String> for ConnectOptions {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

/// Leaves out the URL and the values of parameters, which may have passwords.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parameters.iter().map(|(name, _)| name);
        f.debug_struct("ConnectOptions")
            .field("parameters", &names.collect::<Vec<_>>())
            .field("initial_token", &self.initial_token)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Duration = Duration::from_secs(2);

    fn read(options: impl Into<ConnectOptions>) -> Result<Settings, Error> {
        options.into().read(DEFAULT, DEFAULT / 2..=DEFAULT * 2)
    }

    #[test]
    fn common_parameters_are_taken_out_and_the_rest_stays() {
        let url = "zookeeper://h/app?prefix=jobs&session_ms=4000&response_timeout_ms=1500";
        let settings = read(url).unwrap();
        assert_eq!(settings.server, "zookeeper://h/app");
        assert_eq!(settings.prefix, "jobs");
        assert_eq!(settings.response_timeout, Duration::from_millis(1500));
        assert_eq!(settings.url(), "zookeeper://h/app?session_ms=4000");
        let settings = read("redis://h/1").unwrap();
        assert_eq!(settings.url(), "redis://h/1");
        assert_eq!(settings.prefix, PREFIX);
        assert_eq!(settings.response_timeout, DEFAULT);
    }

    #[test]
    fn a_setter_counts_more_than_the_url() {
        let url = "redis://h?prefix=url&prefix=twice&response_timeout_ms=never&shards=1";
        let options = ConnectOptions::from(url)
            .prefix("one")
            .prefix("two")
            .response_timeout(DEFAULT * 2)
            .parameter("shards", "32");
        let mut settings = read(options).unwrap();
        assert_eq!(settings.prefix, "two");
        assert_eq!(settings.response_timeout, DEFAULT * 2);
        assert_eq!(settings.take("shards").unwrap().as_deref(), Some("32"));
        settings.none_left("shards").unwrap();
    }

    #[test]
    fn wrong_options_are_refused_without_the_password() {
        for (url, says) in [
            ("redis://u:sesame@h?response_timeout_ms=2s", "milliseconds"),
            ("redis://u:sesame@h?response_timeout_ms=10", "is 1s to 4s"),
            ("redis://u:sesame@h?prefix=a&prefix=b", "twice"),
            ("redis://u:sesame@h?prefix=..", "and not . or .."),
            ("redis://u:sesame@h?prefix=a/b", "a prefix is 1 to 64"),
            ("redis://u:sesame@h#x", "fragment"),
        ] {
            let error = read(url).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
            let text = format!("{error} {error:?}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
        let settings = read("redis://u:1?sesame@h").unwrap();
        let error = settings.none_left("shards").unwrap_err().to_string();
        assert!(error.contains("percent-encoded"), "{error}");
        assert!(!error.contains("sesame"), "{error}");
        assert!(!format!("{settings:?}").contains("sesame"));
    }
}
