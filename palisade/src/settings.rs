//! What the URL of any lock service may say behind the `?`.

use std::time::Duration;

use lock_core::{Error, ErrorKind, Operation, backend::support::OURSELVES};

/// A URL without these settings, which the lock services do not know, and the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) url: String,
    pub(super) prefix: Option<String>,
    pub(super) response_timeout: Option<Duration>,
}

impl Settings {
    pub(super) fn of(url: &str) -> Result<Self, Error> {
        let Some((url, query)) = url.split_once('?') else {
            let url = url.to_owned();
            return Ok(Self {
                url,
                ..Self::default()
            });
        };
        let mut settings = Self::default();
        let mut others = Vec::new();
        for parameter in query.split('&') {
            let known = match parameter.split_once('=') {
                Some(("prefix", value)) => settings.prefix.replace(value.to_owned()).is_some(),
                Some(("response_timeout_ms", value)) => {
                    let millis = value.parse().map_err(|_| {
                        invalid("response_timeout_ms in the URL is a number of milliseconds")
                    })?;
                    let timeout = Duration::from_millis(millis);
                    settings.response_timeout.replace(timeout).is_some()
                }
                _ => {
                    others.push(parameter);
                    continue;
                }
            };
            if known {
                return Err(invalid("a parameter of the URL is given twice"));
            }
        }
        url.clone_into(&mut settings.url);
        if !others.is_empty() {
            settings.url += "?";
            settings.url += &others.join("&");
        }
        Ok(settings)
    }
}

fn invalid(why: &str) -> Error {
    Error::not_applied(ErrorKind::InvalidInput)
        .during(Operation::Connect, OURSELVES)
        .because(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_taken_out_and_the_rest_stays() {
        let url = "zookeeper://h/app?prefix=jobs&session_ms=4000&response_timeout_ms=250";
        let settings = Settings::of(url).unwrap();
        assert_eq!(settings.url, "zookeeper://h/app?session_ms=4000");
        assert_eq!(settings.prefix.as_deref(), Some("jobs"));
        assert_eq!(settings.response_timeout, Some(Duration::from_millis(250)));
        for url in ["redis://h", "redis://h/1?tls_ca=a", "memory:"] {
            let settings = Settings::of(url).unwrap();
            let without = Settings {
                url: url.to_owned(),
                ..Settings::default()
            };
            assert_eq!(settings, without);
        }
        assert_eq!(Settings::of("redis://h?prefix=a").unwrap().url, "redis://h");
    }

    #[test]
    fn what_is_no_number_or_given_twice_is_refused() {
        for (url, says) in [
            ("redis://h?response_timeout_ms=2s", "milliseconds"),
            ("redis://h?prefix=a&prefix=b", "twice"),
        ] {
            let error = Settings::of(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
