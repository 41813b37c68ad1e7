//! What connecting to the lock services has in common: the prefix, and URLs with several hosts.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::{Error, ErrorKind, Operation};

/// An error in a URL or a setting. Nothing was sent.
pub fn invalid(why: impl Into<String>) -> Error {
    Error::not_applied(ErrorKind::InvalidInput).because(why)
}

/// Connects to a lock service of this kind; the errors say so.
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

/// Checks what the keys of a lock service begin with.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] says what a prefix is.
pub fn check_prefix(prefix: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if (1..=64).contains(&prefix.len()) && prefix.bytes().all(plain) {
        return Ok(());
    }
    Err(invalid("a prefix is 1 to 64 ASCII letters, digits or -._:"))
}

/// The URL of a lock service: `SCHEME://[USER:PASSWORD@]HOST[:PORT],..[/PATH][?NAME=VALUE&..]`.
pub struct ServiceUrl {
    /// What stands before `://`.
    pub scheme: String,
    /// At least one, IPv6 in brackets.
    pub hosts: Vec<(String, Option<u16>)>,
    /// Decoded; empty if there is none.
    pub user: String,
    /// Decoded. A secret.
    pub password: Option<String>,
    /// Empty, or it begins with a slash.
    pub path: String,
    parameters: Vec<(String, String)>,
}

impl ServiceUrl {
    /// Reads a URL, such as the example.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it cannot be read, lacks a host, or has a fragment.
    pub fn parse(text: &str, example: &str) -> Result<Self, Error> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| invalid(format!("not a URL, such as {example}")))?;
        // The parser of URLs knows one host: it reads one URL for each, with everything else.
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let hosts = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(hosts);
        let urls = hosts.split(',').map(|host| {
            let url = Url::parse(&format!("{scheme}://{user}{host}{tail}"));
            url.map_err(|error| invalid("the URL cannot be read").caused_by(error))
        });
        let urls = urls.collect::<Result<Vec<_>, _>>()?;
        let url = &urls[0];
        if url.fragment().is_some() {
            return Err(invalid("the URL has no use for a #fragment"));
        }
        let decoded = |text| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map_err(|_| invalid("user or password is no text in UTF-8"))
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
            parameters: url.query_pairs().into_owned().collect(),
        })
    }

    /// User and password, if the URL has both.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it has one of them.
    pub fn login(&self) -> Result<Option<(String, String)>, Error> {
        match (&*self.user, self.password.as_deref()) {
            ("", None) => Ok(None),
            ("", _) | (_, None | Some("")) => Err(invalid("user and password need each other")),
            (user, Some(password)) => Ok(Some((user.to_owned(), password.to_owned()))),
        }
    }

    /// Gives each parameter to `take`, which says whether it is one of those that are `known`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for one that is not.
    pub fn parameters(
        &self,
        known: &str,
        mut take: impl FnMut(&str, &str) -> bool,
    ) -> Result<(), Error> {
        let unknown = |(name, value): &&(String, String)| !take(name, value);
        match self.parameters.iter().find(unknown) {
            Some((name, _)) => Err(invalid(format!(
                "this scheme has no parameter {name:?}; there is {known}"
            ))),
            None => Ok(()),
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
