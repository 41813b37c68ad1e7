use std::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts};
use fenced_store::http::{FENCING_TOKEN, FencingHeader};
use lock_core::{FencingToken, ResourceName};

use super::{app::App, wire::CLIENT_HEADER};
use crate::{
    events::{ClientName, Recorder, What},
    ledger::Ledger,
};

/// Takes down what a request of a client of the scenario comes to. Others go unrecorded.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    taking_down: Option<(Recorder, ClientName)>,
    /// The token as the request has it, right or wrong.
    token: Option<FencingToken>,
}

impl Witness {
    pub(super) fn note(&self, resource: &ResourceName, what: What) {
        if let Some((recorder, client)) = &self.taking_down {
            recorder.note(resource, Some(*client), what);
        }
    }

    /// For the record, never for a decision: nobody has checked it.
    pub(super) const fn token(&self) -> Option<FencingToken> {
        self.token
    }
}

impl<DB: Ledger> FromRequestParts<App<DB>> for Witness {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App<DB>) -> Result<Self, Infallible> {
        let named = |name: &ClientName| {
            parts
                .headers
                .get(CLIENT_HEADER)
                .is_some_and(|value| value == name.as_str())
        };
        let client = [ClientName::One, ClientName::Two].into_iter().find(named);
        let token = parts.headers.get(&FENCING_TOKEN);
        let token = token.and_then(|value| FencingHeader::parse(value.as_bytes()).ok());
        Ok(Self {
            taking_down: app.recorder.clone().zip(client),
            token: token.map(|header| header.token()),
        })
    }
}
