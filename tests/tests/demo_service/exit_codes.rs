//! Whatever is wrong is told in one line that says what to do, with an exit code of its own.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Command, Output},
};

use e2e::warden::workspace_binary;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(workspace_binary("demo-service").unwrap());
    command
        .env_remove("PALISADE_LOCK")
        .env_remove("PALISADE_STORE")
        .env_remove("RUST_LOG");
    command.args(arguments).output().unwrap()
}

/// Runs it, and returns what it says on stderr: one line, without the password.
#[track_caller]
fn complaint(arguments: &[&str], code: i32) -> String {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("demo-service: "), "{said}");
    assert!(!said.contains("hunter2"), "a password is shown: {said}");
    assert!(output.stdout.is_empty());
    said
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

#[test]
fn arguments_that_cannot_be_right_are_2() {
    for arguments in [
        &["scenario", "--bogus"][..],
        &["rehearsal"],
        &["scenario", "--ttl", "soon"],
        &["scenario", "--runs", "0"],
        &["serve", "--addr", "localhost"],
        &["serve", "--addr", "127.0.0.1:65536"],
        &["serve"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.starts_with("error: ") && !said.contains("panicked"),
            "{said}"
        );
    }
    for (option, url, hint) in [
        ("--lock", "http://user:hunter2@host", "redis:"),
        ("--lock", "hunter2", "not a URL"),
        ("--store", "mysql://user:hunter2@host/db", "postgres://"),
        (
            "--store",
            "postgres://user:hunter2@host:port/db",
            "postgres",
        ),
        ("--store", "sqlite::memory:", "sqlite:FILE"),
    ] {
        let said = complaint(&["scenario", option, url], 2);
        assert!(said.contains(option) && said.contains(hint), "{said}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_3() {
    let redis = format!("redis://:hunter2@{}", nobody());
    let said = complaint(&["scenario", "--lock", &redis], 3);
    assert!(
        said.contains("--lock") && said.contains("check that it runs"),
        "{said}"
    );
    let postgres = format!("postgres://user:hunter2@{}/db", nobody());
    let said = complaint(&["scenario", "--store", &postgres], 3);
    assert!(
        said.contains("--store") && said.contains("check that it runs"),
        "{said}"
    );
    let said = complaint(&["serve", "--addr", "127.0.0.1:0", "--store", &postgres], 3);
    assert!(said.contains("--store"), "{said}");
}

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

#[test]
fn a_file_that_cannot_be_written_is_5() {
    let times = ["--ttl", "200ms", "--pause", "0ms", "--quiet"];
    let arguments = [
        &["scenario", "--report", "/nowhere/report.html"][..],
        &times,
    ]
    .concat();
    let output = run(&arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("/nowhere/report.html"), "{said}");
}

#[test]
fn help_says_all_of_it() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    for word in ["scenario", "serve", "Examples:", "Exit codes:", "130"] {
        assert!(help.contains(word), "{word}");
    }
    assert!(!help.contains("worker"), "an inner affair is shown");
}
