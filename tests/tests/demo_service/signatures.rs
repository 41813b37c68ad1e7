//! A client of a gateway that signs can use its tokens, but cannot make up a token.

use std::{fs, path::Path, process::Command};

use e2e::warden::workspace_binary;
use fenced_http::{
    FencingHeader, Rejection, TokenVerifier,
    signed::{KeyRing, VerifyingKey},
};

use crate::{
    gateway::Gateway,
    keys::{KeyFile, hang_up, new_key, reload, signing_key},
};

const ACCOUNT: &str = "/v1/accounts/1";

#[tokio::test]
async fn a_token_that_was_not_granted_is_not_accepted() {
    let gateway = Gateway::start().await;
    let good = gateway.token("account:1", 60_000).await;
    let (number, rest) = good.split_once(';').unwrap();
    let (unsigned, signature) = good.split_once(";kid=").unwrap();
    let ahead = number.parse::<u64>().unwrap() + 1;
    let mut bodies = Vec::new();
    for forged in [
        format!("{ahead};{rest}"),
        unsigned.to_owned(),
        format!("{unsigned};exp=1900000000;kid={signature}"),
        good.replace("account:1", "account:2"),
        good.replace("kid=", "kid=x"),
        format!("{unsigned};kid=k9;sig=:AAAAAAAAAAAAAAAAAAAAAA==:"),
    ] {
        let refused = gateway.write(ACCOUNT, Some(&forged), 666).await;
        refused.assert_problem(403, "fencing-token-not-accepted");
        bodies.push(refused.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "a forger learns from the difference");
    assert_eq!(gateway.balance("1").await, None);
    let written = gateway.write(ACCOUNT, Some(&good), 5).await;
    assert_eq!(written.status, 200, "the control");
}

/// The control: without signatures the gateway accepts the same client.
/// Catches: forgeries that are refused for another reason than their signature.
#[tokio::test]
async fn a_token_that_was_made_up_is_accepted_where_nothing_is_signed() {
    let gateway = Gateway::start_unsigned().await;
    let good = gateway.token("account:1", 60_000).await;
    let holder = good.split_once(";hld=").unwrap().1;
    let number = good.split_once(';').unwrap().0;
    let made_up = format!("{number};res=\"account:1\";iss=\"sqlite\";hld={holder}");
    let written = gateway.write(ACCOUNT, Some(&made_up), 5).await;
    assert_eq!(written.status, 200);
}

#[tokio::test]
async fn gateways_with_the_same_keys_change_them_without_a_gap() {
    let world = KeyFile::new();
    let (old, new) = (new_key("old"), new_key("new"));
    world.write_keys(&["# keys\n\n", &old]);
    let mut first = world.gateway().await;
    let mut second = world.gateway().await;
    let signed_before = first.token("account:1", 60_000).await;
    let write = async |gateway: &Gateway, token: &str| {
        gateway.write(ACCOUNT, Some(token), 5).await.status.as_u16()
    };
    assert_eq!(write(&second, &signed_before).await, 200);

    world.write_keys(&[&old, &new]);
    assert_eq!(reload(&mut second).await, "old");
    world.write_keys(&[&new, &old]);
    assert_eq!(reload(&mut first).await, "new");
    assert_eq!(write(&first, &signed_before).await, 200);
    first.release("account:1", &signed_before).await;
    let signed_after = first.token("account:1", 60_000).await;
    assert!(signed_after.contains(";kid=new;"));
    assert_eq!(write(&second, &signed_after).await, 200);

    world.write_keys(&[&new]);
    assert_eq!(reload(&mut second).await, "new");
    assert_eq!(write(&second, &signed_before).await, 403);
    assert_eq!(write(&second, &signed_after).await, 200);
}

/// A leader may renew for days.
#[tokio::test]
async fn a_lease_that_is_renewed_outlives_the_key_that_signed_it_first() {
    let world = KeyFile::new();
    let (old, new) = (new_key("old"), new_key("new"));
    world.write_keys(&[&old]);
    let mut gateway = world.gateway().await;
    let first = gateway.token("account:1", 60_000).await;
    world.write_keys(&[&new, &old]);
    assert_eq!(reload(&mut gateway).await, "new");
    let renewed = gateway.renew("account:1", &first).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    let second = renewed.body["fencing_token"].as_str().unwrap();
    world.write_keys(&[&new]);
    assert_eq!(reload(&mut gateway).await, "new");
    let late = gateway.write(ACCOUNT, Some(&first), 5).await;
    late.assert_problem(403, "fencing-token-not-accepted");
    let written = gateway.write(ACCOUNT, Some(second), 5).await;
    assert_eq!(written.status, 200, "{written:?}");
    assert_eq!(gateway.release("account:1", second).await.status, 204);
}

/// A service with the public half, and nothing else, checks the tokens of the gateway.
#[tokio::test]
async fn a_gateway_can_sign_for_services_that_must_not_be_able_to() {
    let world = KeyFile::new();
    let printed = signing_key(&["e1", "--ed25519"]);
    let public = printed.trim().rsplit_once(": ").unwrap().1;
    let (audience, public) = ("palisade".parse().unwrap(), public.parse().unwrap());
    let service = VerifyingKey::new("e1", public, audience).unwrap();
    let service = KeyRing::new([service]).unwrap();
    let check = |token: &str| service.verify(&FencingHeader::parse(token.as_bytes()).unwrap());

    let old = new_key("k1");
    world.write_keys(&[&old]);
    let mut gateway = world.gateway().await;
    let before = gateway.token("account:2", 60_000).await;
    world.write_keys(&[&printed, &old]);
    assert_eq!(reload(&mut gateway).await, "e1");
    let token = gateway.token("account:1", 60_000).await;
    assert_eq!(check(&token), Ok(()));
    assert_eq!(gateway.write(ACCOUNT, Some(&token), 5).await.status, 200);
    let other = gateway.write("/v1/accounts/2", Some(&before), 5).await;
    assert_eq!(other.status, 200, "both kinds are accepted: {other:?}");

    let (number, rest) = token.split_once(';').unwrap();
    let ahead = format!("{};{rest}", number.parse::<u64>().unwrap() + 1);
    assert_eq!(check(&ahead), Err(Rejection::NotAccepted));
    let refused = gateway.write(ACCOUNT, Some(&ahead), 666).await;
    refused.assert_problem(403, "fencing-token-not-accepted");
    assert_eq!(check(&before), Err(Rejection::NotAccepted));
    assert_eq!(gateway.balance("1").await, Some(5));
}

#[tokio::test]
async fn a_file_that_got_broken_changes_no_keys() {
    let world = KeyFile::new();
    let (old, new) = (new_key("old"), new_key("new"));
    world.write_keys(&[&old]);
    let mut gateway = world.gateway().await;
    let token = gateway.token("account:1", 60_000).await;
    world.write_keys(&[&new, "half a li"]);
    assert!(
        hang_up(&mut gateway)
            .await
            .contains("line 2: a secret is 32 bytes")
    );
    assert_eq!(gateway.write(ACCOUNT, Some(&token), 5).await.status, 200);
    let after = gateway.token("account:2", 60_000).await;
    assert!(after.contains(";kid=old;"), "{after}");
}

/// Catches: a complaint about a file of keys that shows a key.
#[test]
fn the_error_for_a_file_without_keys_names_the_line_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let good = new_key("k1");
    let secret = good.trim().split_once(' ').unwrap().1;
    for (lines, said) in [
        (String::new(), "a key ring has at least one key"),
        (format!("{good}{good}"), "the key id k1 is given twice"),
        (
            format!("{good}k2 {}\n", &secret[1..]),
            "line 2: a secret is 32 bytes",
        ),
        (format!("2k {secret}\n"), "line 1: a key id is a letter"),
        (format!("{secret}\n"), "line 1: a secret is 32 bytes"),
    ] {
        fs::write(&path, lines).unwrap();
        let complaint = complaint(&path);
        assert!(complaint.contains(said), "{complaint}");
        assert!(!complaint.contains(&secret[1..20]), "{complaint}");
    }
    fs::remove_file(&path).unwrap();
    assert!(complaint(&path).contains("No such file"));
}

#[track_caller]
fn complaint(keys: &Path) -> String {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command
        .args([
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--store",
            "sqlite:unused.db",
        ])
        .arg("--signing-keys")
        .arg(keys);
    let output = command.env("RUST_LOG", "error").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
