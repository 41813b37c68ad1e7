use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

use e2e::warden::workspace_binary;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
};

/// `palisade-demo serve` of a user whose folder of data is there, and its URL.
async fn serve(data: &Path) -> (Child, String) {
    let mut served = Command::new(workspace_binary("palisade-demo").unwrap())
        .arg("serve")
        .env_clear()
        .env("XDG_DATA_HOME", data)
        .env("RUST_LOG", "warn")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(served.stdout.take().unwrap()).lines();
    let listening = lines.next_line().await.unwrap().unwrap();
    let store = data.join("palisade/accounts.db");
    let told = format!("store sqlite:{}); open it in a browser", store.display());
    assert!(listening.ends_with(&told), "{listening}");
    let url = listening
        .strip_prefix("listening on ")
        .unwrap()
        .split(' ')
        .next();
    (served, url.unwrap().to_owned())
}

/// Catches: a default that needs an argument, a server or a key, or that warns of a missing one.
#[tokio::test]
async fn serve_needs_no_argument_and_no_free_port_8080() {
    let folder = tempfile::tempdir().unwrap();
    // At least one of them finds the usual port taken.
    let (mut served, url) = serve(folder.path()).await;
    let (_beside, other_url) = serve(folder.path()).await;
    assert_ne!(url, other_url);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let account = format!("{url}/v1/accounts/42");
    let opened: Value = http
        .get(&account)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(opened, json!({ "id": "42", "balance": 100 }));
    let lease = http.post(format!("{url}/v1/leases/account:42"));
    let lease = lease.json(&json!({ "ttl_ms": 60_000 })).send().await;
    let lease: Value = lease.unwrap().json().await.unwrap();
    let write = http.put(&account).json(&json!({ "balance": 150 }));
    let write = write.header("fencing-token", lease["fencing_token"].as_str().unwrap());
    let written = write.send().await.unwrap();
    assert!(
        written.headers().contains_key("fencing-accepted"),
        "{written:?}"
    );
    let page = http.get(&url).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("<html"), "{page}");

    served.kill().await.unwrap();
    let mut said = String::new();
    let mut errors = served.stderr.take().unwrap();
    errors.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "");
}

/// Catches: leases, marks or keys that are lost with their process.
#[tokio::test]
async fn a_holder_still_holds_after_serve_was_killed_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let (mut served, url) = serve(folder.path()).await;
    let lease = json!({ "ttl_ms": 60_000 });
    let granted = http.post(format!("{url}/v1/leases/account:42"));
    let granted = granted.json(&lease).send().await.unwrap();
    let granted: Value = granted.json().await.unwrap();
    let token = granted["fencing_token"].as_str().unwrap();
    served.kill().await.unwrap();

    let (_served, url) = serve(folder.path()).await;
    let resource = format!("{url}/v1/leases/account:42");
    let renewal = http.put(&resource).json(&lease);
    let renewed = renewal.header("fencing-token", token).send().await;
    assert_eq!(renewed.unwrap().status(), 200);
    let write = http.put(format!("{url}/v1/accounts/42"));
    let write = write.json(&json!({ "balance": 150 }));
    let written = write.header("fencing-token", token).send().await.unwrap();
    assert!(
        written.headers().contains_key("fencing-accepted"),
        "{written:?}"
    );
    let next = http.post(&resource).json(&lease).send().await.unwrap();
    assert_eq!(next.status(), 409, "{next:?}");

    // Only this user can read the key to the leases.
    let keys = folder.path().join("palisade/signing-keys");
    let mode = std::fs::metadata(keys).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
