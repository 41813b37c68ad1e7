//! Secrets that are easy to guess, and places where others can read them.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use e2e::warden::workspace_binary;
use reqwest::Method;

use crate::{
    exit_codes::{closed_address, complaint, run},
    gateway::{Gateway, send},
    keys::{KeyFile, hang_up, new_key, signing_key},
};

/// A store that does not exist. A complaint about arguments comes before the complaint about this
/// store, whose exit code is 3.
const NO_STORE: &str = "sqlite:/nonexistent/accounts.db";

/// Puts a secret into a file, and returns its path.
fn in_file(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    // The program refuses a file that others can read.
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The complaint of `serve` about a file of keys that it refuses.
fn refusal_of_keys(lines: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let keys = in_file(folder.path(), "keys", &lines.concat());
    let serve = ["serve", "--addr", "127.0.0.1:0", "--store", NO_STORE];
    complaint(&[&serve[..], &["--signing-keys", &keys]].concat(), 2)
}

fn secret_of(line: &str) -> &str {
    line.lines().next().unwrap().rsplit(' ').next().unwrap()
}

#[test]
fn a_signing_key_that_can_be_guessed_is_refused_and_not_shown() {
    for bytes in [[0; 32], *b"hunter2.hunter2.hunter2.hunter2."] {
        let secret = STANDARD.encode(bytes);
        for kind in ["", "ed25519 "] {
            let said = refusal_of_keys(&[&format!("k1 {kind}{secret}\n")]);
            assert!(said.contains("line 1: a secret is random"), "{said}");
            assert!(!said.contains(&secret), "{said}");
        }
    }
}

/// A new key would be the old key, which may have leaked. A service that only verifies could sign.
#[tokio::test]
async fn one_secret_under_two_ids_or_for_two_algorithms_is_refused_and_not_shown() {
    let good = new_key("k1");
    let secret = secret_of(&good);
    let renamed = format!("k2 {secret}\n");
    let paired = format!("e1 ed25519 {secret}\n");
    for (second, id) in [(&renamed, "k2"), (&paired, "e1")] {
        for lines in [[good.as_str(), second], [second, good.as_str()]] {
            let said = refusal_of_keys(&lines);
            assert!(said.contains(id) && said.contains("k1"), "{said}");
            assert!(
                said.contains("have the same secret") && !said.contains(secret),
                "{said}"
            );
        }
    }
    // The control: another secret for each.
    let world = KeyFile::new();
    let pair = signing_key(&["--ed25519", "e1"]);
    world.write_keys(&[&good, &new_key("k2"), &pair]);
    let mut gateway = world.gateway().await;
    let token = gateway.token("account:1", 60_000).await;
    // When the file is read again, it is refused as well, and nothing has changed.
    world.write_keys(&[&good, &renamed]);
    let said = hang_up(&mut gateway).await;
    assert!(
        said.starts_with("signing keys stay as they were: "),
        "{said}"
    );
    assert!(!said.contains(secret), "{said}");
    let written = gateway.write("/v1/accounts/1", Some(&token), 5).await;
    assert_eq!(written.status, 200, "{written:?}");
}

#[test]
fn an_admin_token_that_can_be_guessed_is_refused_and_not_shown() {
    for token in [
        "aaaaaaaaaaaaaaaa",
        "hunter2hunter2hunter2hunter2",
        "abcdefgabcdefgabcdefg",
        "0123456789abcde",
        "0123456789abcdef hunter2",
    ] {
        let serve = ["serve", "--addr", "127.0.0.1:0", "--store", NO_STORE];
        let said = complaint(&[&serve[..], &["--admin-token", token]].concat(), 2);
        assert!(said.contains("openssl rand"), "{said}");
        assert!(!said.contains(token), "{said}");
    }
}

/// Each command fails because it has asked the server that the file names, and it names that
/// server.
/// Catches: an option whose password all users of the machine can read.
#[test]
fn every_url_of_every_command_can_be_in_a_file_instead_of_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let server = closed_address();
    let nodes = [server, closed_address(), closed_address()].map(|node| node.to_string());
    let [lock, store, nodes] = [
        ("lock", format!("redis://me:hunter2@{server}\n")),
        ("store", format!("postgres://me:hunter2@{server}/app")),
        (
            "nodes",
            format!("redlock+redis://me:hunter2@{}", nodes.join(",")),
        ),
    ]
    .map(|(name, url)| format!("@{}", in_file(folder.path(), name, &url)));
    let at_lock = format!("redis://{server}");
    let at_store = format!("postgres://{server}/app");
    let (lock, store) = (["--lock", lock.as_str()], ["--store", store.as_str()]);
    let to = ["--to", lock[1]];
    let both = [&lock[..], &store].concat();
    let commands: [(&[&str], &[&str], &str); 11] = [
        (&["list"], &lock, &at_lock),
        (&["inspect", "r"], &lock, &at_lock),
        (&["force-release", "r", "--yes"], &both, &at_lock),
        (&["scenario", "--quiet"], &lock, &at_lock),
        (&["serve", "--addr", "127.0.0.1:0"], &lock, &at_lock),
        (
            &["serve", "--addr", "127.0.0.1:0", "--lock", "memory:"],
            &store,
            &at_store,
        ),
        (&["migrations", "apply"], &store, &at_store),
        (&["jobs", "list"], &store, &at_store),
        (&["jobs", "show", "j", "s"], &store, &at_store),
        (
            &[
                "reset-high-water",
                "r",
                "--expected=1",
                "--raise-to=2",
                "--reason=r",
                "--yes",
            ],
            &store,
            &at_store,
        ),
        (
            &[
                "migrate",
                "--from-issuer",
                "old",
                "--yes",
                "--store",
                "sqlite::memory:",
            ],
            &to,
            &at_lock,
        ),
    ];
    for (command, files, server) in commands {
        let said = complaint(&[command, files].concat(), 3);
        assert!(said.contains(server), "{command:?}: {said}");
    }
    // These commands report all that they find.
    let told = run(&[&["doctor"][..], &both].concat());
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.contains(&at_lock) && told.contains(&at_store),
        "{told}"
    );
    let told = run(&["redlock", "status", "--lock", &nodes]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(&server.to_string()), "{told}");
}

/// Catches: a token that is the name of its file, or a complaint that does not name the option.
#[tokio::test]
async fn the_admin_token_can_be_in_a_file_that_a_variable_names() {
    const TOKEN: &str = "0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    let token = format!("@{}", in_file(folder.path(), "token", TOKEN));
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let gateway = Gateway::start_with(&["--store", &store, "--admin-token", &token]).await;
    let list = || gateway.request(Method::GET, "/v1/admin/leases");
    assert_eq!(send(list().bearer_auth(TOKEN)).await.status, 200);
    let by_name = send(list().bearer_auth(&token)).await;
    by_name.assert_problem(401, "not-authenticated");

    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command.env("PALISADE_LOCK", format!("{token}.not"));
    let output = command.arg("list").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--lock: the file"), "{said}");
}

/// A secret may begin with the sign that stands for a file.
/// Catches: a complaint of the parser, which quotes the argument.
#[test]
fn the_error_for_a_missing_or_empty_file_does_not_repeat_the_argument() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = ["", "\n", "hunter2\nhunter2"].map(|text| {
        let name = format!("hunter2-{}", text.len());
        format!("@{}", in_file(folder.path(), &name, text))
    });
    let absent = "@hunter2hunter2hunter2".to_owned();
    for given in wrong.iter().chain([&absent]) {
        for option in ["--admin-token", "--lock", "--store"] {
            let output = run(&["serve", option, given]);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.contains(&format!("{option}: the file that it names")),
                "{said}"
            );
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}

/// A group may read it, so that a service can read a file that only root may change.
/// Catches: a warning that is lost because there is no log yet.
#[test]
fn a_secret_that_others_on_the_machine_can_read_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = in_file(
        folder.path(),
        "lock",
        &format!("redis://{}", closed_address()),
    );
    for (mode, is_told) in [(0o600, false), (0o640, false), (0o644, true), (0o660, true)] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let output = run(&["list", "--lock", &format!("@{file}")]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            said.contains("others can read or change"),
            is_told,
            "{said}"
        );
    }
}
