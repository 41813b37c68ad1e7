//! The allocations of a request: none to read and check a token, and few in the layer.
#![cfg(feature = "signed")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use allocation_counter::measure;
use bytes::Bytes;
use fenced_http::{
    FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, TokenVerifier, Unsigned,
    signed::{Audience, KeyRing, Secret, SigningKey},
};
use http::{HeaderValue, Request, Response};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use tower::{Layer, Service};

fn sequencer() -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(34).unwrap(),
        Holder::random(),
    )
}

fn ring() -> KeyRing {
    let audience = Audience::new("accounts").unwrap();
    KeyRing::new([SigningKey::new("k2", &Secret::random(), audience).unwrap()]).unwrap()
}

/// A header with all optional parts.
fn signed(ring: &KeyRing) -> HeaderValue {
    let (sequencer, key) = (sequencer(), ring.signing_key());
    let header = FencingHeader::new(&sequencer)
        .expires_at(1_900_000_000)
        .map(|header| key.sign(header));
    header.unwrap().try_into().unwrap()
}

fn unsigned() -> Unsigned {
    Unsigned::new(Issuer::new("redis").unwrap())
}

#[test]
fn reading_and_checking_a_token_allocates_nothing() {
    let (ring, unsigned) = (ring(), unsigned());
    let with_signature = signed(&ring);
    let without: HeaderValue = FencingHeader::new(&sequencer()).try_into().unwrap();
    let verify = |verifier: &dyn TokenVerifier, value: &HeaderValue| {
        let header = FencingHeader::parse(value.as_bytes()).unwrap();
        verifier.verify(&header).unwrap();
    };
    // When a thread first reads a ring, it allocates a place for itself.
    verify(&ring, &with_signature);
    let counted = measure(|| {
        verify(&ring, &with_signature);
        verify(&unsigned, &without);
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// Answers at once, without a body, and with the headers of the request. So the map of the headers
/// exists already, as it does in the answers of a router.
#[derive(Clone)]
struct Leaf;

impl Service<Request<()>> for Leaf {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        assert!(request.extensions().get::<Fenced>().is_some());
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = request.into_parts().0.headers;
        ready(Ok(response))
    }
}

/// The layer allocates two names, the grant in the extensions of the request, and the map of the
/// extensions, which is empty before.
#[test]
fn the_layer_allocates_for_the_names_and_the_extension_only() {
    let ring = ring();
    let value = signed(&ring);
    let scope = Scope::path("/accounts/", "account:");
    let mut service = FencingLayer::required(ring, scope).layer(Leaf);
    let mut send = || {
        let request = Request::put("/accounts/42").header(&FENCING_TOKEN, value.clone());
        let request = request.body(()).unwrap();
        let mut response = None;
        let counted = measure(|| {
            let mut future = std::pin::pin!(service.call(request));
            let mut context = Context::from_waker(std::task::Waker::noop());
            response = Some(future.as_mut().poll(&mut context));
        });
        assert!(matches!(response, Some(Poll::Ready(Ok(_)))));
        counted
    };
    send();
    let counted = send();
    assert_eq!(counted.count_total, 5, "{counted:?}");
}
