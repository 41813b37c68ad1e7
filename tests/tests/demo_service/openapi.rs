//! The OpenAPI document of the gateway, and the viewer for it. Each test that sends a request
//! compares the answer with the document: see `contract.rs`.

use std::collections::BTreeSet;

use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};

use crate::{
    contract::{CONTRACT, Contract},
    gateway::{Answer, Gateway, send},
};

const ADMIN_TOKEN: &str = "an-admin-token-of-the-tests";

async fn with_everything(store: &str) -> Gateway {
    Gateway::start_with(&["--store", store, "--admin-token", ADMIN_TOKEN, "--unfenced"]).await
}

/// Catches: a document with operators' routes where there are none, or two documents that differ.
#[tokio::test]
async fn the_gateway_serves_the_document_that_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let gateway = with_everything(&store).await;
    let served = send(gateway.request(Method::GET, "/openapi.json")).await;
    assert_eq!(served.body, *CONTRACT.document());
    assert_eq!(served.body["openapi"], "3.1.0");
    // Without a token for operators there are no routes for them.
    let gateway = Gateway::start().await;
    let served = send(gateway.request(Method::GET, "/openapi.json")).await;
    let paths = served.body["paths"].as_object().unwrap();
    assert!(
        paths.keys().all(|path| !path.contains("admin")),
        "{paths:?}"
    );
    assert!(paths.contains_key("/v1/accounts/{id}"));
}

/// Catches: a method that only the document or only the gateway has.
#[tokio::test]
async fn every_path_knows_the_methods_that_the_document_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let gateway = with_everything(&store).await;
    for (path, documented) in CONTRACT.methods() {
        let path = path.replace("{resource}", "account:1").replace("{id}", "1");
        let request = gateway.request(Method::PATCH, &path);
        let refused = send(request.bearer_auth(ADMIN_TOKEN)).await;
        refused.assert_problem(405, "method-not-allowed");
        let allowed = refused.headers["allow"].to_str().unwrap();
        let allowed: BTreeSet<_> = allowed.split(',').map(|it| it.trim().to_owned()).collect();
        assert_eq!(allowed, documented, "{path}");
    }
}

/// An answer as the document describes it.
fn answer() -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    headers.insert("x-request-id", "1".parse().unwrap());
    headers.insert("fencing-accepted", "5".parse().unwrap());
    Answer {
        status: 200.try_into().unwrap(),
        headers,
        body: json!({ "id": "1", "balance": 5 }),
    }
}

/// The control of all comparisons.
/// Catches: a comparison that sees no difference.
#[test]
fn a_difference_from_the_document_is_found() {
    let differs = |method: Method, path: &str, change: &dyn Fn(&mut Answer)| {
        let mut answer = answer();
        change(&mut answer);
        CONTRACT.check(&method, path, &answer, &answer.body.to_string())
    };
    let account = "/v1/accounts/1";
    assert_eq!(differs(Method::GET, account, &|_| ()), Ok(()));
    for change in [
        (|answer| answer.status = 418.try_into().unwrap()) as fn(&mut Answer),
        |answer| answer.status = 204.try_into().unwrap(),
        |answer| answer.body["bonus"] = json!(1),
        |answer| answer.body["balance"] = json!("5"),
        |answer| answer.body["balance"] = json!(-1),
        |answer| answer.body = json!({ "id": "1" }),
        |answer| answer.body = Value::Null,
        |answer| drop(answer.headers.insert("x-bonus", "1".parse().unwrap())),
        |answer| {
            drop(
                answer
                    .headers
                    .insert("content-type", "text/html".parse().unwrap()),
            )
        },
        |answer| {
            drop(
                answer
                    .headers
                    .insert("fencing-accepted", "x".parse().unwrap()),
            )
        },
        |answer| drop(answer.headers.remove("x-request-id")),
    ] {
        let seen = differs(Method::GET, account, &change);
        let mut changed = answer();
        change(&mut changed);
        assert!(seen.is_err(), "not seen: {changed:?}");
    }
    assert!(differs(Method::DELETE, account, &|_| ()).is_err());
    assert!(differs(Method::GET, "/v1/secrets", &|_| ()).is_err());
    let emptied = Contract::new(json!({ "paths": {}, "components": { "schemas": {} } }));
    let answer = answer();
    let text = answer.body.to_string();
    assert!(
        emptied
            .check(&Method::GET, account, &answer, &text)
            .is_err()
    );
}
