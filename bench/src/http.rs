//! The cost of the edge: one request through a router, with and without the fence.

use std::hint::black_box;

use axum::{Router, body::Body, routing::put};
use fenced_http::{
    FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, Unsigned,
    signed::{Audience, KeyRing, Secret, SigningKey},
};
use futures_util::FutureExt;
use http::{HeaderValue, Request, StatusCode};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use tower_service::Service;

use crate::{
    figure::{BoxError, Figure, Measured, Target::AddsAtMost, Unit},
    paired::{Samples, take_turns},
    pinning::Pinning::SameCore,
};

/// All figures, in the order in which they are measured.
pub(crate) const FIGURES: &[Figure] = &[
    Figure {
        name: "layer_plain",
        what: "a request through a router with the layer, unsigned token / without the layer",
        target: AddsAtMost(450.0),
        pinnings: &[SameCore],
        measure: |rounds| Box::pin(layer_plain(rounds)),
    },
    Figure {
        name: "layer_extractor_signed",
        what: "a request through layer and extractor, signed token / without both",
        target: AddsAtMost(1000.0),
        pinnings: &[SameCore],
        measure: |rounds| Box::pin(layer_extractor_signed(rounds)),
    },
];

/// How many requests are sent in one sample.
const BATCH: usize = 256;

/// How many samples make up a turn.
const SAMPLES_PER_TURN: usize = 20;

const ROUTE: &str = "/accounts/{id}";

async fn layer_plain(rounds: u32) -> Result<Measured, BoxError> {
    let sequencer = sequencer()?;
    let value = FencingHeader::new(&sequencer).try_into()?;
    let verifier = Unsigned::new(sequencer.issuer().clone());
    let layer = FencingLayer::required(verifier, Scope::path("/accounts/", "account:"));
    let handler = put(async || "written").route_layer(layer);
    added(Router::new().route(ROUTE, handler), &value, rounds).await
}

async fn layer_extractor_signed(rounds: u32) -> Result<Measured, BoxError> {
    let key = SigningKey::new("k2", &Secret::random(), Audience::new("accounts")?)?;
    let ring = KeyRing::new([key])?;
    // In the year 2100.
    let sequencer = sequencer()?;
    let header = FencingHeader::new(&sequencer).expires_at(4_102_444_800)?;
    let value = ring.signing_key().sign(header).try_into()?;
    let layer = FencingLayer::required(ring, Scope::path("/accounts/", "account:"));
    let handler = async |fenced: Fenced| {
        black_box(fenced.token());
        "written"
    };
    let handler = put(handler).route_layer(layer);
    added(Router::new().route(ROUTE, handler), &value, rounds).await
}

/// A grant like those of a lock service whose counters start at the clock.
fn sequencer() -> Result<Sequencer, BoxError> {
    let (issuer, resource) = (Issuer::new("redis")?, ResourceName::new("account:42")?);
    let token = FencingToken::new(179_000_000_000_034)?;
    Ok(Sequencer::new(issuer, resource, token, Holder::random()))
}

/// Sends the same request, including its header, through this router and through a router without a
/// fence.
async fn added(fenced: Router, value: &HeaderValue, rounds: u32) -> Result<Measured, BoxError> {
    // The router gets its state, as in a server. Otherwise the layers would be applied anew for
    // every request.
    let fenced = fenced.with_state(());
    let bare = Router::new().route(ROUTE, put(async || "written"));
    let bare = bare.with_state(());
    let medians = take_turns(
        rounds,
        async |ours| sample(ours, &fenced, value),
        async |other| sample(other, &bare, value),
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Nanos))
}

/// The request must not be refused, because a refused request would be faster.
fn sample(samples: &mut Samples, router: &Router, value: &HeaderValue) -> Result<(), BoxError> {
    let mut router = router.clone();
    for _ in 0..SAMPLES_PER_TURN {
        let requests: Result<Vec<_>, _> = (0..BATCH).map(|_| request(value)).collect();
        samples.time_each(requests?, |request| {
            let response = router.call(request).now_or_never();
            let status = response.map(|response| response.map(|response| response.status()));
            assert_eq!(status, Some(Ok(StatusCode::OK)), "not let through");
        });
    }
    Ok(())
}

fn request(value: &HeaderValue) -> Result<Request<Body>, http::Error> {
    Request::put("/accounts/42")
        .header(&FENCING_TOKEN, value.clone())
        .body(Body::empty())
}
