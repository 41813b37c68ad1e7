//! Every wrong `Fencing-Token`: refused as the client's mistake, with nothing written.

use reqwest::{Method, header::HeaderValue};
use serde_json::json;

use crate::gateway::{Gateway, send};

/// Tokens that are wrong in one part, and right in all others.
fn wrong_tokens(good: &str) -> Vec<(u16, Vec<u8>)> {
    let (number, rest) = good.split_once(';').unwrap();
    let mut wrong: Vec<(u16, Vec<u8>)> = Vec::new();
    for number in [
        "",
        "abc",
        "-1",
        "0",
        "+5",
        "5.0",
        "1e3",
        "7 ",
        "7 7",
        "7\t",
        "007",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "0x10",
        "٣",
    ] {
        wrong.push((400, format!("{number};{rest}").into()));
    }
    wrong.push((403, format!("999999999999999;{rest}").into()));
    for header in [
        String::new(),
        number.to_owned(),
        format!("{good};"),
        format!("{good};zzz=1"),
        format!("{good};res=\"account:1\""),
        format!("{good}, {good}"),
        format!("\"{number}\";{rest}"),
        good.replace("hld=\"", "hld=\"zz"),
        good.replace("res=\"account:1\"", "res=\"\""),
        good.replace("res=\"account:1\"", &format!("res=\"{}\"", "x".repeat(257))),
        good.replace("res=\"account:1\"", "res=account:1"),
        format!("{number};res=\"account:1\";iss=\"memory\";hld=\"\""),
        format!("{number};res=\"account:1\";iss=\"memory\""),
        format!("{good}{}", "x".repeat(10_000)),
    ] {
        wrong.push((400, header.into()));
    }
    wrong.push((400, [good.as_bytes(), b"\xff"].concat()));
    wrong.push((
        403,
        good.replace("iss=\"memory\"", "iss=\"elsewhere\"").into(),
    ));
    wrong
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_nothing_is_written() {
    let gateway = Gateway::start().await;
    let good = gateway.token("account:1", 60_000).await;
    gateway.write("/v1/accounts/1", Some(&good), 5).await;
    for (status, token) in wrong_tokens(&good) {
        let token = HeaderValue::from_bytes(&token).unwrap();
        for (method, path, body) in [
            (Method::PUT, "/v1/accounts/1", json!({ "balance": 666 })),
            (Method::PUT, "/v1/leases/account:1", json!({ "ttl_ms": 10 })),
            (Method::DELETE, "/v1/leases/account:1", json!({})),
        ] {
            let request = gateway.request(method.clone(), path).json(&body);
            let answer = send(request.header("fencing-token", &token)).await;
            assert_eq!(
                answer.status, status,
                "{method} {path} {token:?}: {answer:?}"
            );
            answer.assert_any_problem();
        }
    }
    assert_eq!(gateway.balance("1").await, Some(5));
    let written = gateway.write("/v1/accounts/1", Some(&good), 6).await;
    assert_eq!(
        written.status, 200,
        "the lease did not survive: {written:?}"
    );
}

/// Without signatures, the gateway refuses a token of another lock service, a token that no service
/// can have issued, and a token with a signature.
#[tokio::test]
async fn a_token_that_our_lock_service_cannot_have_issued_is_refused_unsigned_too() {
    let gateway = Gateway::start_unsigned().await;
    let good = gateway.open_account().await;
    let (_, rest) = good.split_once(';').unwrap();
    for (token, kind) in [
        (
            good.replace("iss=\"sqlite\"", "iss=\"elsewhere\""),
            "fencing-token-wrong-issuer",
        ),
        (
            format!("999999999999999;{rest}"),
            "fencing-token-implausible",
        ),
        (
            format!("{good};kid=k9;sig=:AAAAAAAAAAAAAAAAAAAAAA==:"),
            "fencing-token-not-accepted",
        ),
    ] {
        let refused = gateway.write("/v1/accounts/1", Some(&token), 666).await;
        refused.assert_problem(403, kind);
    }
    assert_eq!(gateway.balance("1").await, Some(5));
    let written = gateway.write("/v1/accounts/1", Some(&good), 6).await;
    assert_eq!(written.status, 200, "the control: {written:?}");
}
