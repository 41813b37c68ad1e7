//! The parts of connecting that lock services share: settings, and URLs with several hosts.

use std::{fmt, str::FromStr, time::Duration};

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use crate::{Error, ErrorKind, InitialToken, Operation};

/// An error in a URL or a setting. Nothing was sent.
pub fn invalid(why: impl Into<String>) -> Error {
    Error::not_applied(ErrorKind::InvalidInput).because(why)
}

/// Connects to a lock service of this kind. The errors name the kind.
///
/// # Errors
/// Those of connecting.
///
/// # Cancel safety
/// That of connecting.
pub async fn connect<T>(
    kind: &'static str,
    connect: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let connected = connect.await;
    connected.map_err(|error| error.during(Operation::Connect, kind))
}

/// The parts of [`ConnectOptions`](crate::backend::ConnectOptions) that all lock services read.
///
/// A lock service takes its own parameters, and refuses those that are [left](Self::none_left).
pub struct Settings {
    /// The URL up to its `?`. It may have a password.
    pub server: String,
    /// 1 to 64 ASCII letters, digits or `-._:`, and not `.` or `..`.
    pub prefix: String,
    /// Within the bounds of the lock service.
    pub response_timeout: Duration,
    /// Where a missing token counter starts.
    pub initial_token: InitialToken,
    pub(crate) parameters: Vec<(String, String)>,
}

impl Settings {
    /// Takes a parameter.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the URL has it twice.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, Error> {
        let mut values = self.parameters.extract_if(.., |(other, _)| other == name);
        let value = values.next().map(|(_, value)| value);
        match values.next() {
            Some(_) => Err(invalid(format!("{name} is given twice in the URL"))),
            None => Ok(value),
        }
    }

    /// Takes a parameter that is a number.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the value is no number, or given twice.
    pub fn take_number<N: FromStr>(&mut self, name: &str) -> Result<Option<N>, Error> {
        self.take_as(name, "a whole number")
    }

    /// Takes a parameter that is a number of milliseconds.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the value is no number, or given twice.
    pub fn take_millis(&mut self, name: &str) -> Result<Option<Duration>, Error> {
        let millis = self.take_as(name, "a number of milliseconds")?;
        Ok(millis.map(Duration::from_millis))
    }

    fn take_as<N: FromStr>(&mut self, name: &str, what: &str) -> Result<Option<N>, Error> {
        let wrong = || invalid(format!("{name} in the URL is {what}"));
        let value = self.take(name)?;
        value
            .map(|value| value.parse().map_err(|_| wrong()))
            .transpose()
    }

    /// Refuses a parameter that was not taken. `own` names the parameters of this lock service.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for such a parameter.
    pub fn none_left(&self, own: &str) -> Result<(), Error> {
        match self.parameters.first() {
            Some((name, _)) => Err(invalid(format!(
                "this scheme has no parameter {}; there is prefix, response_timeout_ms{}{own}",
                shown(name),
                if own.is_empty() { "" } else { ", " },
            ))),
            None => Ok(()),
        }
    }

    /// The URL with the parameters that were not taken. It may have passwords.
    #[must_use]
    pub fn url(&self) -> String {
        if self.parameters.is_empty() {
            return self.server.clone();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(&self.parameters).finish();
        format!("{}?{query}", self.server)
    }
}

/// The name of a parameter. A name that may be a part of a password with a `?` or `&` is not shown.
pub(super) fn shown(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.[]".contains(&byte);
    match name.bytes().all(plain) {
        true => format!("{name:?}"),
        false => "of that name (reserved characters in a password must be percent-encoded)".into(),
    }
}

/// Shows no password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("prefix", &self.prefix)
            .field("response_timeout", &self.response_timeout)
            .field("initial_token", &self.initial_token)
            .finish_non_exhaustive()
    }
}

/// The URL of a lock service up to its `?`: `SCHEME://[USER:PASSWORD@]HOST[:PORT],..[/PATH]`.
#[non_exhaustive]
pub struct ServiceUrl {
    /// The part before `://`.
    pub scheme: String,
    /// At least one, IPv6 in brackets.
    pub hosts: Vec<(String, Option<u16>)>,
    /// Decoded; empty if there is none.
    pub user: String,
    /// Decoded. A secret.
    pub password: Option<String>,
    /// Empty, or it begins with a slash.
    pub path: String,
}

impl ServiceUrl {
    /// Reads a URL, such as the example.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it cannot be read or lacks a host.
    pub fn parse(server: &str, example: &str) -> Result<Self, Error> {
        let (scheme, rest) = server
            .split_once("://")
            .ok_or_else(|| invalid(format!("not a URL, such as {example}")))?;
        // The parser of URLs knows one host only. So it reads one URL for each host, with
        // everything else.
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let hosts = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(hosts);
        let urls = hosts.split(',').map(|host| {
            let url = Url::parse(&format!("{scheme}://{user}{host}{tail}"));
            url.map_err(|error| invalid("the URL cannot be read").caused_by(error))
        });
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        let url = &urls[0];
        let decoded = |text| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map_err(|_| invalid("user or password is not UTF-8"))
        };
        Ok(Self {
            scheme: scheme.to_owned(),
            hosts: urls.iter().map(host).collect::<Result<_, _>>()?,
            user: decoded(url.username())?.into_owned(),
            password: match url.password() {
                Some(password) => Some(decoded(password)?.into_owned()),
                None => None,
            },
            path: url.path().to_owned(),
        })
    }

    /// User and password, if the URL has both.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it has only one of them.
    pub fn login(&self) -> Result<Option<(String, String)>, Error> {
        match (&*self.user, self.password.as_deref()) {
            ("", None) => Ok(None),
            ("", _) | (_, None | Some("")) => Err(invalid(
                "the URL has only one of user and password: give both",
            )),
            (user, Some(password)) => Ok(Some((user.to_owned(), password.to_owned()))),
        }
    }
}

/// Shows no password.
impl fmt::Debug for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceUrl")
            .field("scheme", &self.scheme)
            .field("hosts", &self.hosts)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn host(url: &Url) -> Result<(String, Option<u16>), Error> {
    match url.host_str() {
        None | Some("") => Err(invalid("a host is missing in the URL")),
        Some(host) => Ok((host.to_owned(), url.port())),
    }
}
