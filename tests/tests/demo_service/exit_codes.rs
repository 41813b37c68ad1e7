//! Each fault is reported in one line that says what to do, with an exit code of its own.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Command, Output},
};

use e2e::warden::workspace_binary;

/// The program that has this command, with no settings but these.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let program = match arguments.first() {
        Some(&"scenario") => "palisade-demo",
        _ => "palisade",
    };
    let mut command = Command::new(workspace_binary(program).unwrap());
    command
        .env_remove("PALISADE_LOCK")
        .env_remove("PALISADE_STORE")
        .env_remove("RUST_LOG")
        .args(arguments);
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs the program, and returns its line on stderr, which must not have the password.
#[track_caller]
pub(crate) fn complaint(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    // On a busy machine the log may also say that a statement was slow.
    let is_log = |line: &&str| line.contains("slow statement");
    let lines: Vec<_> = said.lines().filter(|line| !is_log(line)).collect();
    let [line] = lines[..] else {
        panic!("{said}");
    };
    assert!(line.starts_with("palisade: "), "{said}");
    assert!(!said.contains("hunter2"), "a password is shown: {said}");
    assert!(output.stdout.is_empty());
    said
}

/// An address without a listener.
pub(crate) fn closed_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Catches: a panic over arguments, or a complaint that shows a password or has no hint.
#[test]
fn arguments_that_cannot_be_right_are_2() {
    for arguments in [
        &["scenario", "--bogus"][..],
        &["rehearsal"],
        &["scenario", "--ttl", "soon"],
        &["scenario", "--runs", "0"],
        &["serve", "--addr", "localhost"],
        &["serve", "--addr", "127.0.0.1:65536"],
        &["serve", "--unsigned=maybe"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("error: ") && !said.contains("panicked"),
            "{said}"
        );
    }
    // `memory:` would be an empty lock service of the command's own process.
    for command in [
        &["list"][..],
        &["inspect", "account:1"],
        &[
            "force-release",
            "account:1",
            "--yes",
            "--store",
            "sqlite:never-made.db",
        ],
    ] {
        let said = complaint(&[command, &["--lock", "memory:"]].concat(), 2);
        assert!(said.contains("is in this process alone"), "{said}");
    }
}

/// Catches: a part of a URL that is ignored, or a complaint that shows a password or names neither
/// the option nor the fault.
#[test]
fn urls_that_cannot_be_right_are_2() {
    for (option, url, hint) in [
        ("--lock", "http://user:hunter2@host", "redis:"),
        ("--lock", "hunter2", "not a URL"),
        ("--store", "http://user:hunter2@host/db", "mysql://"),
        ("--lock", "localhost:6379", "redis://localhost:6379?"),
        (
            "--store",
            "postgres://user:hunter2@host:port/db",
            "invalid port number",
        ),
        ("--store", "sqlite::memory:", "sqlite:FILE"),
        ("--store", "sqlite:never-made.db?journal=wal", "\"journal\""),
        (
            "--store",
            "postgres://user:hunter2@host/db?sslmod=verify-full",
            "\"sslmod\"",
        ),
        (
            "--lock",
            "postgres://user:hunter2@host/db?sslmod=verify-full",
            "\"sslmod\"",
        ),
        (
            "--lock",
            "postgres://user:hunter2@host/db?sslmode=verify",
            "sslmode has a bad value",
        ),
        (
            "--lock",
            "postgres://user:hunter2@host/db?sslkey=/no/such",
            "/no/such cannot be read",
        ),
        (
            "--lock",
            "postgres://user:hunter2@a:1,b:2/db",
            "several hosts",
        ),
        (
            "--lock",
            "postgresql+psycopg2://user:hunter2@host/db",
            "did you mean postgresql://",
        ),
        ("--lock", "redis+unix:///run/redis.sock", "Unix socket"),
    ] {
        let said = complaint(&["scenario", option, url], 2);
        assert!(said.contains(option) && said.contains(hint), "{said}");
    }
    let url = "mysql://user:hunter2@host/db?ssl_mode=REQUIRED";
    let said = complaint(&["jobs", "list", "--store", url], 2);
    assert!(said.contains("\"ssl_mode\""), "{said}");
}

#[test]
fn a_key_with_a_passphrase_is_2_and_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem");
    std::fs::write(&key, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n").unwrap();
    let key = key.display();
    for (option, url) in [
        ("--lock", format!("rediss://h?tls_cert={key}&tls_key={key}")),
        ("--lock", format!("etcds://h?tls_cert={key}&tls_key={key}")),
        ("--lock", format!("postgres://h/db?sslkey={key}")),
        ("--store", format!("postgres://h/db?sslkey={key}")),
    ] {
        let said = complaint(&["scenario", option, &url], 2);
        assert!(said.contains("the key has a passphrase"), "{said}");
    }
}

/// Catches: a command that makes a file because its name is misspelt, or reports it as a server
/// that is down.
#[test]
fn a_file_that_is_not_there_is_3() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let operated = [
        "reset-high-water",
        "account:42",
        "--expected",
        "1",
        "--raise-to",
        "2",
        "--reason",
        "a test",
        "--yes",
    ];
    for missing in [file("nix.db"), file("nowhere/nix.db")] {
        let said = complaint(&[&operated[..], &["--store", &missing]].concat(), 3);
        assert!(
            said.contains("does not exist; this command creates none"),
            "{said}"
        );
    }
    let (addr, store) = (
        ["--addr", "127.0.0.1:0"],
        ["--store", &file("nowhere/nix.db")],
    );
    let said = complaint(&[&["serve"][..], &addr, &store].concat(), 3);
    assert!(said.contains("its folder does not exist"), "{said}");
    let made = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(made, 0, "something was created");
    // A file that is no database does not run, either.
    std::fs::write(folder.path().join("text.db"), "no database".repeat(100)).unwrap();
    let said = complaint(
        &[
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--store",
            &file("text.db"),
        ],
        3,
    );
    assert!(
        said.contains("--store is right") && !said.contains("runs"),
        "{said}"
    );
}

/// Catches: a failure of a server that is reported without the option that named it, or without the
/// server's own words, or with its password.
#[tokio::test]
async fn a_server_that_does_not_answer_or_refuses_is_3_and_says_why() {
    let lock = format!("redis://:hunter2@{}", closed_address());
    let store = format!("postgres://user:hunter2@{}/db", closed_address());
    for (option, url) in [("--lock", &lock), ("--store", &store)] {
        let said = complaint(&["scenario", option, url], 3);
        assert!(
            said.contains(option) && said.contains("check that it runs"),
            "{said}"
        );
    }
    let postgres = e2e::servers::postgres_database().await;
    let url = postgres.url().replacen('?', "-is-not-there?", 1);
    let said = complaint(&["scenario", "--store", &url], 3);
    assert!(
        said.contains("does not exist") && !said.contains("at line"),
        "{said}"
    );
    let redis = e2e::servers::redis().await;
    let said = complaint(&["scenario", "--lock", &format!("{}/99", redis.url())], 3);
    assert!(said.contains("DB index is out of range"), "{said}");
    let said = complaint(
        &["list", "--lock", "redis://:hunter2@nosuchhost.invalid"],
        3,
    );
    assert!(said.contains("host name"), "{said}");
}

/// Catches: an address in use that is reported as another fault, or after a file has been made.
#[test]
fn an_address_in_use_is_4() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let said = complaint(
        &["serve", "--addr", &addr, "--store", "sqlite:never-made.db"],
        4,
    );
    assert!(said.contains(&addr) && said.contains("--addr"), "{said}");
}

/// Catches: a missing folder that is reported only after the whole scenario has been played.
#[test]
fn a_file_that_cannot_be_written_is_5() {
    for option in ["--svg", "--record"] {
        let said = complaint(&["scenario", option, "/nowhere/file"], 5);
        assert!(said.contains("/nowhere/file"), "{said}");
    }
    // The folder exists, but at the place of the file is a folder, too.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let times = ["--ttl", "200ms", "--pause", "0ms", "--quiet"];
    let arguments = [&["scenario", "--svg", folder][..], &times].concat();
    let output = run(&arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains(folder), "{said}");
}
