//! One request through a router, with and without the fence.

use std::hint::black_box;

use axum::{Router, body::Body, routing::put};
use fenced_http::{FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, Unsigned};
use futures_util::FutureExt;
use http::{HeaderValue, Request, StatusCode};
use tower_service::Service;

use super::token::{ring, sequencer, signed};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

/// How many requests are sent in one sample.
const BATCH: usize = 256;

/// How many samples make up a turn.
const SAMPLES_PER_TURN: usize = 20;

const ROUTE: &str = "/accounts/{id}";

pub(super) async fn layer_plain(setting: Setting) -> Result<Measured, BoxError> {
    let sequencer = sequencer()?;
    let value = FencingHeader::new(&sequencer).try_into()?;
    let layer = FencingLayer::required(Unsigned::new(sequencer.issuer().clone()));
    let handler = put(async || "written").route_layer(layer.resource(scope()));
    added(Router::new().route(ROUTE, handler), &value, setting).await
}

pub(super) async fn layer_extractor_signed(setting: Setting) -> Result<Measured, BoxError> {
    let ring = ring()?;
    let value = signed(&ring)?;
    let layer = FencingLayer::required(ring).resource(scope());
    let handler = async |fenced: Fenced| {
        black_box(fenced.token());
        "written"
    };
    let handler = put(handler).route_layer(layer);
    added(Router::new().route(ROUTE, handler), &value, setting).await
}

fn scope() -> Scope {
    Scope::path("/accounts/", "account:")
}

/// The same request, including its header, through this router and through one without a fence.
async fn added(
    fenced: Router,
    value: &HeaderValue,
    setting: Setting,
) -> Result<Measured, BoxError> {
    // With the state, as in a server: otherwise the layers are applied anew for every request.
    let fenced = fenced.with_state(());
    let bare = Router::new().route(ROUTE, put(async || "written"));
    let bare = bare.with_state(());
    let medians = take_turns(
        setting.rounds,
        async |ours| sample(ours, &fenced, value),
        async |other| sample(other, &bare, value),
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Nanos))
}

/// A refused request would be quicker, so it must not be refused.
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
