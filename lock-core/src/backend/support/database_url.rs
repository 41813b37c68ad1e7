//! URLs of databases. Their client library connects even if it does not know a parameter, so a
//! misspelt `sslmode` would mean no TLS. This module refuses such URLs.

use std::{env, error::Error as StdError, fs, str::FromStr};

use url::{Url, form_urlencoded};

use super::{
    connecting::{invalid, shown},
    tls_files::check_key,
};
use crate::Error;

const POSTGRES: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];
const MYSQL: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslca",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "charset",
    "collation",
    "socket",
    "timezone",
    "time-zone",
];
const SQLITE: &[&str] = &["mode", "cache", "immutable", "vfs"];

/// Reads the URL of a PostgreSQL, MySQL or SQLite database, and looks at the files that it names.
/// If the host is an IPv6 address in brackets, `with_host` sets it without them, because the client
/// library would look up the brackets, too.
///
/// # Errors
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) names the parameter that is unknown
/// or wrong, or says what else cannot be used: several hosts, a fragment, a file that cannot be
/// read, a key with a passphrase, or an invalid `PGSSLMODE`. The error shows no password.
pub fn parse<O>(text: &str, with_host: impl FnOnce(O, &str) -> O) -> Result<O, Error>
where
    O: FromStr<Err: StdError + Send + Sync + 'static>,
{
    let (server, query) = text.split_once('?').unwrap_or((text, ""));
    let scheme = server.split(':').next().unwrap_or_default();
    let parameters: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    check_names(scheme, &parameters)?;
    let host = match scheme {
        "sqlite" => None,
        _ => Some(host(text)?),
    };
    check_one_host(host.as_deref(), &parameters)?;
    check_files(&parameters)?;
    // The client library ignores a mode that it does not know, as it ignores a parameter.
    let mode = env::var("PGSSLMODE").unwrap_or_default();
    if scheme.starts_with("postgres") && !mode.is_empty() {
        let alone = format!("{scheme}://?sslmode={mode}").parse::<O>();
        alone.map_err(|error| invalid("PGSSLMODE has a bad value").caused_by(error))?;
    }
    let options: O = text
        .parse()
        .map_err(|error| wrong_value::<O>(scheme, &parameters, error))?;
    Ok(match host.as_deref().and_then(without_brackets) {
        Some(host) => with_host(options, host),
        None => options,
    })
}

fn check_names(scheme: &str, parameters: &[(String, String)]) -> Result<(), Error> {
    let known = match scheme {
        "sqlite" => SQLITE,
        "mysql" | "mariadb" => MYSQL,
        _ => POSTGRES,
    };
    let is_known = |name: &str| {
        let setting = name.starts_with("options[") && name.ends_with(']');
        known.contains(&name) || (setting && known.contains(&"options"))
    };
    let unknown = parameters.iter().find(|(name, _)| !is_known(name));
    match unknown {
        Some((name, _)) => Err(invalid(format!(
            "this scheme has no parameter {}; there is {}",
            shown(name),
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

/// The host of a URL. It is a list of hosts if it has commas.
fn host(text: &str) -> Result<String, Error> {
    let (_, rest) = text
        .split_once("://")
        .ok_or_else(|| invalid("not a URL, such as postgres://user:password@host/database"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let hosts = authority.rsplit('@').next().unwrap_or_default();
    if hosts.contains(',') {
        return Ok(hosts.to_owned());
    }
    let url = Url::parse(text);
    let url = url.map_err(|error| invalid("the URL cannot be read").caused_by(error))?;
    if url.fragment().is_some() {
        return Err(invalid(
            "the URL has a #fragment, which has no meaning here",
        ));
    }
    Ok(url.host_str().unwrap_or_default().to_owned())
}

fn check_one_host(host: Option<&str>, parameters: &[(String, String)]) -> Result<(), Error> {
    let named = parameters
        .iter()
        .filter(|(name, _)| matches!(&**name, "host" | "hostaddr" | "port"))
        .map(|(_, value)| &**value);
    match host.into_iter().chain(named).any(|host| host.contains(',')) {
        true => Err(invalid(
            "the URL names several hosts: name one, such as an address that follows the primary",
        )),
        false => Ok(()),
    }
}

/// Reads the files that the URL names, on this thread: they are small, and are read only when a
/// client is made.
fn check_files(parameters: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in parameters {
        let is_key = matches!(&**name, "sslkey" | "ssl-key");
        let is_file = is_key || (name.starts_with("ssl") && !name.ends_with("mode"));
        if !is_file {
            continue;
        }
        // The parameter may be the content of the file.
        let pem = match value.trim_start().starts_with("-----BEGIN") {
            true => value.clone().into_bytes(),
            false => fs::read(value).map_err(|error| {
                invalid(format!("{name}: {value} cannot be read")).caused_by(error)
            })?,
        };
        if is_key {
            check_key(name, &pem)?;
        }
    }
    Ok(())
}

/// Finds the parameter whose value the client library cannot read, because its error does not name
/// it.
fn wrong_value<O>(scheme: &str, parameters: &[(String, String)], error: O::Err) -> Error
where
    O: FromStr<Err: StdError + Send + Sync + 'static>,
{
    let wrong = parameters.iter().find_map(|(name, value)| {
        let mut alone = form_urlencoded::Serializer::new(String::new());
        let alone = alone.append_pair(name, value).finish();
        let error = format!("{scheme}://?{alone}").parse::<O>().err()?;
        Some((name, value, error))
    });
    match wrong {
        // The value may be the rest of a password, and the error may repeat it.
        Some((name, value, _)) if value.contains('@') => invalid(format!("{name} has a bad value")),
        Some((name, _, error)) => invalid(format!("{name} has a bad value")).caused_by(error),
        None => invalid("the URL cannot be read").caused_by(error),
    }
}

fn without_brackets(host: &str) -> Option<&str> {
    host.strip_prefix('[')?.strip_suffix(']')
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::ErrorKind;

    /// A client library that keeps the host, and knows one mode.
    #[derive(Debug, PartialEq, Eq)]
    struct Options(String);

    impl FromStr for Options {
        type Err = io::Error;

        fn from_str(text: &str) -> Result<Self, io::Error> {
            let url = Url::parse(text).map_err(io::Error::other)?;
            match url.query_pairs().find(|(name, _)| name == "sslmode") {
                Some((_, mode)) if mode != "require" => {
                    Err(io::Error::other(format!("unknown {mode}")))
                }
                _ => Ok(Self(url.host_str().unwrap_or_default().to_owned())),
            }
        }
    }

    fn read(url: &str) -> Result<Options, Error> {
        parse(url, |_, host| Options(host.to_owned()))
    }

    #[test]
    fn an_ipv6_address_is_a_host_without_its_brackets() {
        for (url, host) in [
            ("postgres://u:p@[::1]:5432/db?sslmode=require", "::1"),
            ("mysql://u:p@[fe80::1]/db", "fe80::1"),
            ("postgres://h/db?options[search_path]=app&user=u", "h"),
            ("postgres:///db?host=/run/postgresql", ""),
            ("sqlite:bank.db?mode=rwc", ""),
        ] {
            assert_eq!(read(url).unwrap(), Options(host.to_owned()), "{url}");
        }
    }

    #[test]
    fn an_ignored_or_wrong_parameter_is_named_without_the_password() {
        for (url, says) in [
            ("postgres://u:sesame@h/db?sslmod=verify-full", "\"sslmod\""),
            (
                "postgresql://u:sesame@h/db?target_session_attrs=any",
                "target_session_attrs",
            ),
            (
                "mysql://u:sesame@h/db?ssl_mode=REQUIRED",
                "\"ssl_mode\"; there is sslmode, ",
            ),
            ("mysql://u:sesame@h/db?host=h", "\"host\""),
            ("mariadb://u:sesame@h/db?options[x]=y", "\"options[x]\""),
            ("sqlite:bank.db?journal=wal", "\"journal\"; there is mode, "),
            ("postgres://u:1?sesame@h/db", "percent-encoded"),
            (
                "postgres://u:1?sslmode=sesame@h/db",
                "sslmode has a bad value",
            ),
            (
                "postgres://u:sesame@h/db?sslmode=on",
                "sslmode has a bad value: unknown on",
            ),
            ("postgres://u:sesame@a,b/db", "several hosts"),
            ("postgres://u:sesame@a:1,b:2/db", "several hosts"),
            ("postgres://u:sesame@h/db?host=a,b", "several hosts"),
            ("postgres:u:sesame@h/db", "not a URL"),
            ("postgres://u:sesame@h:x/db", "cannot be read: invalid port"),
            ("postgres://u:sesame@h/db#x", "fragment"),
            (
                "postgres://u:sesame@h/db?sslrootcert=/no/such",
                "sslrootcert: /no/such cannot",
            ),
            (
                "mysql://u:sesame@h/db?ssl-key=-----BEGIN+ENCRYPTED+PRIVATE+KEY-----",
                "ssl-key: the key has a passphrase",
            ),
        ] {
            let error = read(url).unwrap_err();
            let text = format!("{error} {error:?}");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}");
            assert!(text.contains(says), "{url}: {text}");
            assert!(!text.contains("sesame"), "{url}: {text}");
        }
    }
}
