use std::{fmt, time::Duration};

use redis::{
    Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

/// The address on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The login and the kind of transport that several servers share.
#[derive(Clone)]
pub(crate) struct Access {
    login: RedisConnectionInfo,
    /// The kind of transport, with or without TLS. Its own address has no meaning.
    transport: ConnectionAddr,
    tcp: TcpSettings,
}

impl Address {
    /// Reads `host:port`. An IPv6 address may stand in brackets. An empty host means the host of
    /// the server that sent the text, as in redirections of a cluster that does not know its own
    /// name.
    pub(crate) fn parse(text: &str, said_by: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Self::of(host, port.parse().ok()?, said_by)
    }

    /// Reads an address in two parts. The host `?` stands for a server whose address is unknown.
    pub(crate) fn of(host: &str, port: u16, said_by: &Self) -> Option<Self> {
        let host = match host.trim_start_matches('[').trim_end_matches(']') {
            "?" => return None,
            "" => &said_by.host,
            host => host,
        };
        let host = host.to_owned();
        Some(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Access {
    /// Access with this login. The client gives up an answer that takes longer than
    /// `response_timeout`.
    pub(crate) fn new(
        login: RedisConnectionInfo,
        transport: ConnectionAddr,
        response_timeout: Duration,
    ) -> Self {
        Self {
            login,
            transport,
            tcp: tcp_settings(response_timeout),
        }
    }

    /// The same transport with another login.
    pub(crate) fn with_login(&self, login: RedisConnectionInfo) -> Self {
        Self {
            login,
            ..self.clone()
        }
    }

    /// The client library's settings for one server.
    pub(crate) fn client(&self, address: &Address) -> RedisResult<Client> {
        let Address { host, port } = address.clone();
        let address = match &self.transport {
            ConnectionAddr::TcpTls { tls_params, .. } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(
            address
                .into_connection_info()?
                .set_redis_settings(self.login.clone())
                .set_tcp_settings(self.tcp.clone()),
        )
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password and a private key are left out.
        let tls = matches!(self.transport, ConnectionAddr::TcpTls { .. });
        f.debug_struct("Access")
            .field("user", &self.login.username())
            .field("tls", &tls)
            .finish_non_exhaustive()
    }
}

fn tcp_settings(response_timeout: Duration) -> TcpSettings {
    // Systems count keepalive in whole seconds. It is needed for the connection that only listens,
    // because a connection on which an answer is late is given up sooner.
    let silence = std::cmp::max(response_timeout, Duration::from_secs(1));
    let keepalive = TcpKeepalive::new()
        .with_time(silence * 2)
        .with_interval(silence);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(silence * 2);
    tcp
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a wrong address for a node that does not know its own host (`:7000`, `?:7000`).
    #[test]
    fn redirections_name_a_host_or_mean_the_one_that_answers() {
        let answering = Address {
            host: "10.0.0.1".to_owned(),
            port: 6379,
        };
        for (text, says) in [
            ("10.0.0.2:7000", Some("10.0.0.2:7000")),
            (":7000", Some("10.0.0.1:7000")),
            ("[fe80::1]:7000", Some("fe80::1:7000")),
            ("node-2.example:7000", Some("node-2.example:7000")),
            ("?:7000", None),
            ("10.0.0.2", None),
            ("10.0.0.2:70000", None),
        ] {
            let address = Address::parse(text, &answering).map(|address| address.to_string());
            assert_eq!(address.as_deref(), says, "{text}");
        }
    }
}
