//! Databases: as lock service and store, and as the store behind a lock service that stays.

use std::marker::PhantomData;

use e2e::{
    servers::{DatabaseServer, MySqlServer, apart, redis},
    warden::ServerKind,
};
use sqlx::{
    ConnectOptions, Connection, Executor, MySql, PgConnection, Postgres, postgres::PgConnectOptions,
};

use crate::failover::{
    books::Books,
    crew::{Crew, IMPATIENT, Place},
    endpoint::{Endpoint, Names},
    replica::Replicated,
};

/// Two databases behind one endpoint.
async fn crews<DB: Books>(one: String, other: String) -> Vec<Crew<DB>> {
    let separator = if one.contains('?') { '&' } else { '?' };
    let both = Place {
        name: "leases and store",
        lock: format!("{one}{separator}{IMPATIENT}"),
        store: one,
        is_one: true,
        loses_leases: true,
        loses_store: true,
    };
    let store = Place {
        name: "store",
        lock: apart(&format!("{}?{IMPATIENT}", redis().await.url())),
        store: other,
        is_one: false,
        loses_leases: false,
        loses_store: true,
    };
    vec![Crew::new(both).await, Crew::new(store).await]
}

/// A server, and a standby.
pub(crate) struct OnePostgres {
    first: DatabaseServer,
    standby: DatabaseServer,
    names: Names,
}

impl OnePostgres {
    fn options(server: &DatabaseServer) -> PgConnectOptions {
        server.url().parse().unwrap()
    }

    fn address(server: &DatabaseServer) -> String {
        let options = Self::options(server);
        format!("{}:{}", options.get_host(), options.get_port())
    }

    fn url_of(&self, database: &str) -> String {
        let options = Self::options(&self.first).host("127.0.0.1");
        let options = options.port(self.names.port()).database(database);
        options.to_url_lossy().to_string()
    }
}

impl Endpoint for OnePostgres {
    type Db = Postgres;

    const NAME: &'static str = "Postgres";

    async fn start() -> Self {
        let first = DatabaseServer::postgres(&[]).await;
        let mut owner = PgConnection::connect(first.url()).await.unwrap();
        for database in ["CREATE DATABASE bank", "CREATE DATABASE shop"] {
            owner.execute(database).await.unwrap();
        }
        Self {
            standby: first.standby().await,
            names: Names::of([Self::address(&first)]).await,
            first,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<Postgres>> {
        crews(self.url_of("bank"), self.url_of("shop")).await
    }

    async fn takes_no_writes(&self) {
        self.names.lead_to([&*Self::address(&self.standby)]);
    }

    /// The first one ends when the standby has everything.
    async fn is_succeeded(&self) {
        self.names.lead_nowhere();
        self.first.shut_down().await;
        self.standby.promote().await;
        self.names.lead_to([&*Self::address(&self.standby)]);
    }
}

/// A MariaDB or a MySQL, and a replica that takes no writes of usual users.
pub(crate) struct OneMySql<S> {
    servers: Replicated,
    names: Names,
    server: PhantomData<S>,
}

impl<S: MySqlServer> OneMySql<S> {
    /// Without TLS, as in the other tests.
    fn url_of(&self, database: &str) -> String {
        let port = self.names.port();
        format!("mysql://app:secret@127.0.0.1:{port}/{database}?ssl-mode=disabled")
    }
}

impl<S: MySqlServer> Endpoint for OneMySql<S> {
    type Db = MySql;

    const NAME: &'static str = match S::KIND {
        ServerKind::MariaDb => "MariaDB",
        _ => "MySQL",
    };

    async fn start() -> Self {
        let servers = Replicated::start(S::KIND).await;
        servers.create(&["bank", "shop"]).await;
        Self {
            names: Names::of([servers.first_address()]).await,
            servers,
            server: PhantomData,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<MySql>> {
        crews(self.url_of("bank"), self.url_of("shop")).await
    }

    async fn takes_no_writes(&self) {
        self.names.lead_to([&*self.servers.replica_address()]);
    }

    async fn is_succeeded(&self) {
        self.names.lead_nowhere();
        self.servers.succeed().await;
        self.names.lead_to([&*self.servers.replica_address()]);
    }
}
