use std::{convert::Infallible, fmt, path::Path, str::FromStr};

use url::Url;

/// The URL of a server, as the user has given it. Its printed form never contains a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// The address of a SQLite file.
    #[must_use]
    pub fn sqlite_file(path: &Path) -> Self {
        Self(format!("sqlite:{}", path.display()))
    }

    /// The lock service inside this process.
    #[must_use]
    pub fn memory() -> Self {
        Self("memory:".to_owned())
    }

    /// Whether this is the lock service inside this process.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.scheme() == "memory"
    }

    /// Whether this is the address of a database that can be lock service and store.
    #[must_use]
    pub fn is_database(&self) -> bool {
        self.is_database_server() || self.scheme() == "sqlite"
    }

    /// Whether this is the address of a database in which the tables of a store include those of
    /// leases.
    #[must_use]
    pub fn is_database_server(&self) -> bool {
        matches!(
            self.scheme(),
            "postgres" | "postgresql" | "mysql" | "mariadb"
        )
    }

    /// The whole text, including the password: only for connecting.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Scheme and servers of a URL that names several servers, if all of them are `host:port`.
    fn servers(&self) -> Option<(&str, &str)> {
        let (scheme, rest) = self.0.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let servers = authority.rsplit('@').next()?;
        let is_plain = |server: &str| {
            server.rsplit_once(':').is_some_and(|(host, port)| {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
                host.bytes().all(plain) && port.parse::<u16>().is_ok()
            })
        };
        (servers.contains(',') && servers.split(',').all(is_plain)).then_some((scheme, servers))
    }

    /// Whether the host and port may really be user and password, because an `@` comes later: an
    /// unescaped `/`, `?` or `#` in a password ends the host.
    fn is_ambiguous(&self) -> bool {
        let rest = self.0.split_once("://").map(|(_, rest)| rest);
        let behind = rest.and_then(|rest| rest.split_once(['/', '?', '#']));
        behind.is_some_and(|(_, behind)| behind.contains('@'))
    }

    /// Whether the text after the scheme is neither servers nor a file: `redis:password@host`.
    fn lacks_slashes(&self) -> bool {
        let scheme = self.scheme();
        !self.0[scheme.len()..].starts_with("://") && !["sqlite", "memory"].contains(&scheme)
    }

    /// The text before the first colon.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

/// Accepts any text, so that no message of the argument parser can quote a password.
impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// Prints scheme, host, port and path, without user, password and query. If a text is not a URL, or
/// if these parts cannot be distinguished, no part of it is printed.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ambiguous() || self.lacks_slashes() {
            return f.write_str("(not a URL)");
        }
        let Ok(url) = Url::parse(&self.0) else {
            return match self.servers() {
                Some((scheme, servers)) => write!(f, "{scheme}://{servers}"),
                None => f.write_str("(not a URL)"),
            };
        };
        write!(f, "{}:", url.scheme())?;
        if let Some(host) = url.host_str() {
            write!(f, "//{host}")?;
        }
        if let Some(port) = url.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(url.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let address: Address = text.parse().unwrap();
        format!("{address} {address:?}")
    }

    /// Catches: an address in an unusual form whose password gets into a log or an error.
    #[test]
    fn a_printed_address_holds_no_secret() {
        for secret in [
            "postgres://me:hunter2@db.example:5432/app?password=hunter2",
            "redis://:hunter2@127.0.0.1:6379/0",
            "postgres://me:hunter2@",
            "redis:hunter2://@host",
            "postgres:me:hunter2@db/app?x=http://y",
            "hunter2",
            "postgres://me:hunter2@host:notaport/app",
            "redlock+redis://me:hunter2@a:1,b:2?x=hunter2",
            "redis+cluster://me:hunter2,hunter2:1@a:1,b:2",
            "redis+cluster://me:hunter2,b:2",
            "redis+cluster://a:hunter2,hunter2:2/x@b:2",
            "redis:hunter2@host:6379",
            "redis:/hunter2@host:6379",
            "redis:hunter2",
            "postgres:me:hunter2@db/app",
            "redis:///:hunter2@h",
            "postgres://me:12/hunter2@db/app",
            "postgres://me:12?hunter2@db/app",
            "postgres://me:12#hunter2@db/app",
        ] {
            assert!(!shown(secret).contains("hunter2"), "{}", shown(secret));
        }
    }

    /// Digits before a `/` look like a port.
    /// Catches: a cut at the first delimiter, which leaves a part of the password.
    #[test]
    fn the_beginning_of_a_password_is_not_shown_as_a_port() {
        for delimiter in ['/', '?', '#'] {
            let text = format!("postgres://me:4711{delimiter}rest@db/app");
            assert!(!shown(&text).contains("4711"), "{}", shown(&text));
            let text = format!("redis+cluster://me:4711,b:2{delimiter}rest@c:3");
            assert!(!shown(&text).contains("4711"), "{}", shown(&text));
        }
    }
}
