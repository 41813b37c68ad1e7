//! Checks the name under which a client reaches the gateway. On a loopback address, only requests
//! under names of this machine are answered. On another address, only requests under the names that
//! an operator gives are answered, if there are any.
//!
//! The owner of a web page can make its name point to 127.0.0.1. For a browser, that page and the
//! gateway then have the same origin, so the page may send any request and read the answers. Only
//! the name in `Host` distinguishes such a request.

use std::{net::IpAddr, str::FromStr, sync::Arc};

use axum::{
    extract::Request,
    http::{header, uri::Authority},
};
use fenced_http::Problem;

use crate::problems;

/// Paths that show nothing secret. Balancers ask for them under any address.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Names under which clients may reach a gateway, besides those that every machine has for itself.
#[derive(Clone, Debug, Default)]
pub struct HostNames(Arc<[Box<str>]>);

impl HostNames {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a host is one of these names, or a name by which each machine reaches itself.
    fn have(&self, host: &str) -> bool {
        // An IPv6 address is in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        let is_host = |name: &str| name.eq_ignore_ascii_case(host);
        host.parse().is_ok_and(is_loopback)
            || is_host("localhost")
            || self.0.iter().any(|name| is_host(name))
    }

    /// Whether all names of hosts in a request are right. A request without a name is not from a
    /// browser.
    fn are_of(&self, request: &Request) -> bool {
        // A target that is a whole URI comes before the header (RFC 9112, 3.2.2).
        if let Some(authority) = request.uri().authority() {
            return self.have(authority.host());
        }
        let mut hosts = request.headers().get_all(header::HOST).iter();
        hosts.all(|host| {
            // The port does not matter: a forwarder may have another one.
            let authority = Authority::try_from(host.as_bytes());
            authority.is_ok_and(|authority| self.have(authority.host()))
        })
    }
}

/// Accepts names with commas between them, without ports, and addresses without brackets.
impl FromStr for HostNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(|name| {
            let authority = Authority::from_str(name);
            let is_name = authority.is_ok_and(|authority| authority.host() == name);
            match is_name || IpAddr::from_str(name).is_ok() {
                true => Ok(Box::from(name)),
                false => Err(format!("{name:?} is not the name of a host without a port")),
            }
        });
        names.collect::<Result<_, _>>().map(Self)
    }
}

/// The names under which a gateway answers.
#[derive(Clone, Debug)]
pub(crate) struct OwnNames {
    names: HostNames,
    is_for_others: bool,
}

impl OwnNames {
    /// The names of a gateway that listens at this address.
    pub(crate) fn at(address: IpAddr, names: HostNames) -> Self {
        Self {
            names,
            is_for_others: !address.to_canonical().is_loopback(),
        }
    }

    fn lets_pass(&self, request: &Request) -> bool {
        let is_health = || HEALTH.contains(&request.uri().path());
        (self.is_for_others && (self.names.is_empty() || is_health())) || self.names.are_of(request)
    }

    /// The refusal of a request that is not for this gateway; `None` if it is.
    pub(crate) fn refusal(&self, request: &Request) -> Option<Problem> {
        let detail = match self.is_for_others {
            _ if self.lets_pass(request) => return None,
            true => "this gateway answers only under a name of --allowed-hosts",
            false => {
                "this gateway listens on a loopback address and answers only as localhost, \
                 127.0.0.1 or [::1], or under a name of --allowed-hosts"
            }
        };
        Some(Problem::new(problems::MISDIRECTED).detail(detail))
    }
}
