//! `ETag` and `If-Match`: writes on condition, behind the fence.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::gateway::{Answer, Gateway, send};

const FENCED: &str = "/v1/accounts/1";
const UNFENCED: &str = "/v1/unfenced/accounts/1";

fn write_if(gateway: &Gateway, path: &str, condition: &str, balance: i64) -> RequestBuilder {
    gateway
        .request(Method::PUT, path)
        .header("if-match", condition)
        .json(&json!({ "balance": balance }))
}

fn tag(answer: &Answer) -> &str {
    answer.headers["etag"].to_str().unwrap()
}

#[tokio::test]
async fn every_answer_with_an_account_has_its_version() {
    let gateway = Gateway::start().await;
    let token = gateway.token("account:1", 60_000).await;
    let written = gateway.write(FENCED, Some(&token), 5).await;
    for path in [FENCED, UNFENCED] {
        let read = send(gateway.request(Method::GET, path)).await;
        assert_eq!(tag(&read), tag(&written), "{path}");
    }
    let overwritten = gateway.write(UNFENCED, None, 6).await;
    assert_ne!(tag(&overwritten), tag(&written));
}

#[tokio::test]
async fn a_write_on_condition_is_made_only_over_that_version() {
    let gateway = Gateway::start().await;
    let token = gateway.token("account:1", 60_000).await;
    let fenced = |condition: &str, balance| {
        write_if(&gateway, FENCED, condition, balance).header("fencing-token", &token)
    };
    let first = gateway.write(FENCED, Some(&token), 5).await;
    let first = tag(&first).to_owned();
    let listed = format!("\"something else\", {first}");
    let second = send(fenced(&listed, 6)).await;
    assert_eq!(second.status, 200, "{second:?}");
    assert!(second.headers.contains_key("fencing-accepted"));

    // A weak tag never matches, and neither does what is no tag.
    let second = tag(&second).to_owned();
    for condition in [
        &first,
        &format!("W/{second}"),
        &second.replace('"', ""),
        "\"\"",
    ] {
        let refused = send(fenced(condition, 666)).await;
        refused.assert_problem(412, "version-mismatch");
        assert!(!refused.headers.contains_key("fencing-accepted"));
        let refused = send(write_if(&gateway, UNFENCED, condition, 666)).await;
        refused.assert_problem(412, "version-mismatch");
    }
    assert_eq!(gateway.balance("1").await, Some(6));
    assert_eq!(send(fenced("*", 7)).await.status, 200);
    assert_eq!(send(write_if(&gateway, UNFENCED, "*", 8)).await.status, 200);
    let there_is_none = write_if(&gateway, "/v1/unfenced/accounts/2", "*", 1);
    send(there_is_none)
        .await
        .assert_problem(412, "version-mismatch");
    assert_eq!(gateway.balance("2").await, None);
}

/// Two that open the same account, each on condition that there is none: the second is told.
#[tokio::test]
async fn a_write_on_condition_that_there_is_no_such_version_is_made_over_another_one_only() {
    let gateway = Gateway::start().await;
    let token = gateway.token("account:1", 60_000).await;
    for (path, token) in [(FENCED, Some(&token)), ("/v1/unfenced/accounts/2", None)] {
        let write = |conditions: &[(&'static str, &str)], balance: i64| {
            let mut request = gateway.request(Method::PUT, path);
            for (name, value) in conditions {
                request = request.header(*name, *value);
            }
            if let Some(token) = token {
                request = request.header("fencing-token", token);
            }
            send(request.json(&json!({ "balance": balance })))
        };
        let none = ("if-none-match", "*");
        assert_eq!(write(&[none], 5).await.status, 200, "{path}");
        write(&[none], 666)
            .await
            .assert_problem(412, "version-mismatch");
        // A weak tag matches, too: it is asked whether it is the same in essence.
        for tags in ["\"5\"", "W/\"5\"", "\"4\", \"5\""] {
            let refused = write(&[("if-none-match", tags)], 666).await;
            refused.assert_problem(412, "version-mismatch");
        }
        let both = [("if-match", "\"5\""), ("if-none-match", "\"5\"")];
        write(&both, 666)
            .await
            .assert_problem(412, "version-mismatch");
        assert_eq!(write(&[("if-none-match", "\"4\"")], 6).await.status, 200);
        let both = [("if-match", "\"6\""), ("if-none-match", "\"5\"")];
        assert_eq!(write(&both, 7).await.status, 200, "{path}");
    }
    for id in ["1", "2"] {
        assert_eq!(gateway.balance(id).await, Some(7));
    }
}

/// Whoever lost its lease must not be told to read and try again, whatever its condition says.
#[tokio::test]
async fn the_fence_comes_before_the_condition() {
    let gateway = Gateway::start().await;
    let stale = gateway.token("account:1", 60_000).await;
    let written = gateway.write(FENCED, Some(&stale), 5).await;
    let (right, wrong) = (tag(&written).to_owned(), "\"wrong\"");
    gateway.release("account:1", &stale).await;
    gateway.token("account:1", 60_000).await;
    for condition in [right.as_str(), wrong] {
        let refused = write_if(&gateway, FENCED, condition, 666).header("fencing-token", &stale);
        send(refused)
            .await
            .assert_problem(412, "fencing-token-stale");
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}
