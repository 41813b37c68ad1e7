//! `palisade-demo serve`, as it is built and without its live page, compared with a bare router.

mod bare;
mod client;

use e2e::{process::Process, servers::DatabaseServer};
use fenced_store::SqliteFencedStore;
use serde_json::Value;
use sqlx::{Pool, Postgres, Sqlite};
use tempfile::TempDir;
use tokio::net::TcpStream;

use self::{
    bare::{Bare, over_postgres, over_sqlite},
    client::{connect, request, requests_per_second, send},
};
use crate::{
    figure::{
        BoxError, Figure, Measured,
        Target::{AtLeast, Reported},
        Unit,
    },
    paired::take_turns,
    pinning::{Pinning::CrossCore, on_server_core},
    store::durable_postgres,
};

const CLIENTS: u32 = 16;

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "gateway_get_vs_bare",
        what: "GET of an account in SQLite, with the default log / the same query by a handler of \
               axum with nothing around it",
        target: AtLeast(0.75),
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(on_sqlite(rounds, Asked::Get)),
    },
    Figure {
        name: "gateway_healthz_vs_bare",
        what: "GET of /healthz, with the default log / the same by axum with nothing around it",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(on_sqlite(rounds, Asked::Health)),
    },
    Figure {
        name: "gateway_put_sqlite_vs_bare",
        what: "fenced PUT of an account in SQLite / one UPDATE by a handler of axum",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(on_sqlite(rounds, Asked::Put)),
    },
    Figure {
        name: "gateway_put_postgres_vs_bare",
        what: "fenced PUT of an account in Postgres / one UPDATE by a handler of axum",
        target: Reported,
        pinnings: &[CrossCore],
        measure: |rounds| Box::pin(on_postgres(rounds, Asked::Put)),
    },
];

async fn on_sqlite(rounds: u32, asked: Asked) -> Result<Measured, BoxError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("accounts.db");
    let gateway = Gateway::start(&format!("sqlite:{}", file.display())).await?;
    let options = SqliteFencedStore::recommended(gateway.store.parse()?);
    let bare = Bare::start(|| over_sqlite(Pool::<Sqlite>::connect_lazy_with(options)))?;
    compare_rates(rounds, asked, &gateway, &bare).await
}

async fn on_postgres(rounds: u32, asked: Asked) -> Result<Measured, BoxError> {
    let server: DatabaseServer = durable_postgres()?;
    let gateway = Gateway::start(server.url()).await?;
    let options = gateway.store.parse()?;
    let bare = Bare::start(|| over_postgres(Pool::<Postgres>::connect_lazy_with(options)))?;
    compare_rates(rounds, asked, &gateway, &bare).await
}

#[derive(Clone, Copy)]
enum Asked {
    Get,
    Health,
    Put,
}

/// Each client has an account of its own.
async fn compare_rates(
    rounds: u32,
    asked: Asked,
    gateway: &Gateway,
    bare: &Bare,
) -> Result<Measured, BoxError> {
    let mut director = TcpStream::connect(&gateway.address).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for id in 0..CLIENTS {
        let acquire = format!("POST /v1/leases/account:{id}");
        let acquire = request(&acquire, "", r#"{"ttl_ms":300000}"#);
        let lease: Value = serde_json::from_str(&send(&mut director, &acquire).await?)?;
        let token = lease["fencing_token"].as_str();
        let token = format!("fencing-token: {}\r\n", token.unwrap_or_default());
        let write = format!("PUT /v1/accounts/{id}");
        let write = request(&write, &token, r#"{"balance":7}"#);
        send(&mut director, &write).await?;
        let request = match asked {
            Asked::Get => request(&format!("GET /v1/accounts/{id}"), "", ""),
            Asked::Health => request("GET /healthz", "", ""),
            Asked::Put => write,
        };
        ours.push(connect(&gateway.address, &request).await?);
        theirs.push(connect(&bare.address, &request).await?);
    }
    let medians = take_turns(
        rounds,
        async |samples| {
            samples.push(requests_per_second(&ours).await?);
            Ok(())
        },
        async |samples| {
            samples.push(requests_per_second(&theirs).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// The program on the core of the server, over the lock service in memory.
struct Gateway {
    _process: Process,
    /// The folder with the gateway's log.
    _folder: TempDir,
    store: String,
    address: String,
}

impl Gateway {
    async fn start(store: &str) -> Result<Self, BoxError> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let arguments = [
            "serve",
            "--addr=127.0.0.1:0",
            "--live-page=false",
            "--store",
            store,
        ];
        let mut process =
            on_server_core(|| Process::spawn_with_log("palisade-demo", arguments, &log))?;
        // `listening on http://127.0.0.1:PORT (..`
        let line = process.line().await.unwrap_or_default();
        let address = line
            .split(' ')
            .nth(2)
            .and_then(|url| url.strip_prefix("http://"));
        Ok(Self {
            address: address.ok_or("palisade-demo does not listen")?.to_owned(),
            _process: process,
            _folder: folder,
            store: store.to_owned(),
        })
    }
}
