use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use fenced_http::{FENCING_TOKEN, FencingHeader};
use lock_core::{FencingToken, ResourceName};

use super::{app::App, wire::CLIENT_HEADER};
use crate::{
    events::{ClientName, ExchangeId, Recorder, What},
    ledger::Ledger,
};

/// Records the outcome of requests of the scenario's clients, and of no others.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    taking_down: Option<(Recorder, ClientName)>,
    /// The number under which the request itself is recorded.
    exchange: Option<ExchangeId>,
    /// The token in the request, right or wrong.
    token: Option<FencingToken>,
}

impl Witness {
    pub(super) fn note(&self, resource: &ResourceName, what: What) {
        if let Some((recorder, client)) = &self.taking_down {
            recorder.note_seen(resource, *client, self.exchange, what);
        }
    }

    /// The token for the record. Never decide by it, because it was not checked.
    pub(super) const fn token(&self) -> Option<FencingToken> {
        self.token
    }
}

impl<DB: Ledger> FromRequestParts<App<DB>> for Witness {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App<DB>) -> Result<Self, Infallible> {
        Ok(Self {
            taking_down: app.recorder.clone().zip(client(&parts.headers)),
            exchange: parts.extensions.get().map(|Taken(exchange)| *exchange),
            token: token(&parts.headers),
        })
    }
}

/// The number of a recorded request, in the extensions of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken(pub(super) ExchangeId);

/// The client of the scenario that sends these headers; `None` if it is another client.
pub(super) fn client(headers: &HeaderMap) -> Option<ClientName> {
    let name = headers.get(CLIENT_HEADER)?;
    let clients = [ClientName::One, ClientName::Two];
    clients.into_iter().find(|client| name == client.as_str())
}

/// The number of the token in a request, right or wrong.
pub(super) fn token(headers: &HeaderMap) -> Option<FencingToken> {
    let header = FencingHeader::parse(headers.get(&FENCING_TOKEN)?.as_bytes());
    header.ok().map(|header| header.token())
}
