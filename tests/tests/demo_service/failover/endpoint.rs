//! Names that lead to servers, and what can happen to them.

use e2e::{
    port,
    proxy::{Fault, Proxy},
};
use futures_util::future::join_all;

use crate::failover::{books::Books, crew::Crew};

/// A lock service, or a database that is lock service and store, behind names.
pub(crate) trait Endpoint {
    /// The database of the store.
    type Db: Books;

    /// The word for it in the table of times.
    const NAME: &'static str;

    /// Whether its clients replace sessions that stay open and have no answers. Those of a
    /// database, and of a Redlock node, go on when the system gives their connections up.
    const REPLACES_SILENT_SESSIONS: bool = false;

    async fn start() -> Self;

    fn names(&self) -> &Names;

    /// Clients that reach it by its names.
    async fn crews(&self) -> Vec<Crew<Self::Db>>;

    /// From here on there are servers behind the names that take no writes.
    async fn takes_no_writes(&self);

    /// The end of that.
    async fn takes_writes(&self) {
        self.names().lead_back();
    }

    /// For good another server, which has all that was written, takes the place of the first one.
    async fn is_succeeded(&self);
}

/// Names, each of which leads to one server.
pub(crate) struct Names {
    proxies: Vec<Proxy>,
    servers: Vec<String>,
}

impl Names {
    /// For servers at these addresses, `HOST:PORT`.
    pub(crate) async fn of(servers: impl IntoIterator<Item = String>) -> Self {
        let servers: Vec<_> = servers.into_iter().map(url).collect();
        Self {
            proxies: join_all(servers.iter().map(|server| Proxy::start(server))).await,
            servers,
        }
    }

    /// The port of the first name.
    pub(crate) fn port(&self) -> u16 {
        self.proxies[0].port()
    }

    /// All names, as in a URL.
    pub(crate) fn addresses(&self) -> String {
        let address = |proxy: &Proxy| format!("127.0.0.1:{}", proxy.port());
        self.proxies
            .iter()
            .map(address)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Ends all sessions.
    pub(crate) fn end_sessions(&self, fault: Fault) {
        for proxy in &self.proxies {
            proxy.inflict(fault);
        }
    }

    /// Nothing passes from here on, and no end notices.
    pub(crate) fn fall_silent(&self) {
        for proxy in &self.proxies {
            proxy.inflict_on_new(Fault::BlackHole);
        }
        self.end_sessions(Fault::BlackHole);
    }

    /// All that was held up arrives.
    pub(crate) fn speak_again(&self) {
        for proxy in &self.proxies {
            proxy.let_go();
        }
    }

    /// One name leads to another server; its sessions end.
    pub(crate) fn lead_one(&self, number: usize, address: &str) {
        self.proxies[number].point_to(&url(address.to_owned()));
        self.proxies[number].inflict(Fault::Cut);
    }

    /// All names lead to other servers.
    pub(crate) fn lead_to<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) {
        for (number, address) in addresses.into_iter().enumerate() {
            self.lead_one(number, address);
        }
    }

    /// There is no server behind the names, so that every connection is refused.
    pub(crate) fn lead_nowhere(&self) {
        let nowhere = format!("127.0.0.1:{}", port::free().unwrap());
        self.lead_to(vec![&*nowhere; self.proxies.len()]);
    }

    /// To where they led at first.
    pub(crate) fn lead_back(&self) {
        for (proxy, server) in self.proxies.iter().zip(&self.servers) {
            proxy.point_to(server);
            proxy.inflict(Fault::Cut);
        }
    }
}

fn url(address: String) -> String {
    format!("tcp://{address}")
}
