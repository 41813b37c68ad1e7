//! What connecting to the lock services has in common: the prefix, and URLs with several hosts.

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

/// The parts of `SCHEME://[USER@]HOST,HOST..[TAIL]`.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// What stands before `://`.
    pub scheme: &'a str,
    /// With the `@` at its end, if there is one.
    pub user: &'a str,
    hosts: &'a str,
    /// Path, query and fragment.
    tail: &'a str,
}

impl<'a> Parts<'a> {
    /// Nothing, if that is no URL.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let hosts = authority.rfind('@').map_or(0, |at| at + 1);
        let (user, hosts) = authority.split_at(hosts);
        Some(Self {
            scheme,
            user,
            hosts,
            tail,
        })
    }

    /// One URL for each host, with everything else: the parser of URLs knows one host.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if it cannot be read, or has a fragment.
    pub fn urls(self) -> Result<Vec<Url>, Error> {
        let Self {
            scheme,
            user,
            hosts,
            tail,
        } = self;
        let url = |host| {
            let url = Url::parse(&format!("{scheme}://{user}{host}{tail}"));
            let url = url.map_err(|error| invalid("the URL cannot be read").caused_by(error));
            url.and_then(|url| match url.fragment() {
                Some(_) => Err(invalid("the URL has no use for a #fragment")),
                None => Ok(url),
            })
        };
        hosts.split(',').map(url).collect()
    }
}

/// The host of a URL, IPv6 in brackets, and the port.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if there is no host.
pub fn address<'a>(url: &'a Url, port: u16) -> Result<(&'a str, u16), Error> {
    match url.host_str() {
        None | Some("") => Err(invalid("a host is missing in the URL")),
        Some(host) => Ok((host, url.port().unwrap_or(port))),
    }
}
