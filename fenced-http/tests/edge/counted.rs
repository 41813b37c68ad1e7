//! The layer counts the requests that it refuses, and not those that pass.

use std::{collections::BTreeMap, convert::Infallible, future::ready};

use bytes::Bytes;
use fenced_http::{FENCING_TOKEN, FencingHeader, FencingLayer, Scope, Unsigned};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use lock_core::{Issuer, backend::metric};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tower::{Layer, Service, service_fn};

use crate::grant::sequencer;

/// The counter of refusals by status and problem.
fn refusals(exported: &Snapshotter) -> BTreeMap<(String, String), u64> {
    let snapshot = exported.snapshot().into_vec().into_iter();
    let refusals = snapshot.filter_map(|(key, _, description, value)| {
        let (key, DebugValue::Counter(count)) = (key.key(), value) else {
            return None;
        };
        assert!(key.name() == metric::EDGE_REFUSALS.name && description.is_some());
        let label = |name: &str| {
            let label = key.labels().find(|label| label.key() == name).unwrap();
            label.value().to_owned()
        };
        Some(((label("status"), label("problem")), count))
    });
    refusals.collect()
}

/// Catches: a refusal that no counter shows.
#[tokio::test]
async fn refusals_of_the_layer_begin_at_nothing_and_are_counted() {
    let recorder = DebuggingRecorder::new();
    let exported = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(&recorder);
    let verifier = Unsigned::new(Issuer::new("redis").unwrap());
    let layer = FencingLayer::required(verifier, Scope::compared_by_handler());
    assert!(refusals(&exported).into_values().all(|count| count == 0));

    let answer =
        |_: Request<()>| ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())));
    let mut service = layer.layer(service_fn(answer));
    let good = HeaderValue::try_from(FencingHeader::new(&sequencer(33))).unwrap();
    for value in [None, None, Some("33"), Some(good.to_str().unwrap())] {
        let mut request = Request::put("/accounts/42").body(()).unwrap();
        if let Some(value) = value {
            request
                .headers_mut()
                .insert(&FENCING_TOKEN, value.parse().unwrap());
        }
        let Ok(_) = service.call(request).await;
    }
    let counted = refusals(&exported)
        .into_iter()
        .filter(|(_, count)| *count > 0);
    let expected = [
        (("400", "fencing-token-malformed"), 1),
        (("428", "fencing-token-required"), 2),
    ];
    let named = |((status, problem), count): ((&str, &str), u64)| {
        ((status.to_owned(), problem.to_owned()), count)
    };
    assert_eq!(counted.collect::<Vec<_>>(), expected.map(named).to_vec());
}
