//! `serve`: a gateway, accounts and jobs, and the live page.

use axum::Router;
use palisade_cli::{Failure, Service};

use crate::{
    api,
    cli::DemoArgs,
    ledger,
    live::{self, Studio},
};

/// The account that is opened if the user names no store, and its first balance.
const FIRST_ACCOUNT: (&str, i64) = ("42", 100);

/// Serves until a signal ends it.
///
/// # Errors
/// If the address is taken, a server cannot be used, or requests under way do not end in time.
pub(crate) async fn run(args: &DemoArgs) -> Result<(), Failure> {
    let has_page = has_live_page(args)?;
    let service = Service::open(&args.gateway, "accounts.db").await?;
    let first = args.gateway.store.is_none().then_some(FIRST_ACCOUNT);
    ledger::prepare(service.store(), first).await?;
    let (gateway, store) = (service.gateway(), service.store());
    let studio = has_page.then(|| Studio::new(format!("http://{}", service.addr())));
    let recorder = studio.as_ref().map(Studio::recorder);
    let routes = api::routes(gateway, store, recorder, args.unfenced);
    let (page, hint) = match studio {
        Some(studio) => {
            let page = live::Page {
                studio,
                kinds: [gateway.locks().backend_kind(), store.kind()],
                request_time: gateway.time_limit().get(),
            };
            let page = live::router(page, gateway.is_closing());
            (page, "; open it in a browser")
        }
        None => (Router::new(), ""),
    };
    service.run(routes.merge(page), hint).await
}

/// The live page starts processes for each visitor, and shows the leases. So only this machine may
/// use it, and it has to be switched on if there is a proxy, or if there are operators.
fn has_live_page(args: &DemoArgs) -> Result<bool, Failure> {
    let named = args.gateway.addr.filter(|addr| !addr.ip().is_loopback());
    match (args.live_page, named) {
        (Some(true), Some(addr)) => Err(Failure::Usage(format!(
            "--live-page: not on {addr}, because it starts processes for every visitor"
        ))),
        (Some(wanted), _) => Ok(wanted),
        (None, named) => Ok(named.is_none() && !args.gateway.has_neighbours()),
    }
}
