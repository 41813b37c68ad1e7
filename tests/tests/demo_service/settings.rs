//! Flags override the environment, and the environment overrides the defaults.

use std::process::{Command, Output};

use e2e::warden::workspace_binary;

/// `serve` with these variables and no others of ours.
fn serve(environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    let inherited = std::env::vars().filter(|(name, _)| name.starts_with("PALISADE_"));
    for (name, _) in inherited {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG");
    command.envs(environment.iter().copied());
    command.arg("serve").args(arguments).output().unwrap()
}

/// Each place has a wrong value of its own, so the complaint shows which place counts.
#[test]
fn a_flag_goes_before_the_environment_that_before_the_default() {
    let variables = [
        ("PALISADE_STORE", "sqlite:accounts.db"),
        ("PALISADE_MAX_WAITING", "hunter2"),
    ];
    for (environment, arguments, said) in [
        (&variables[..], &["--max-waiting=flag"][..], "'flag'"),
        (&variables, &[], "'hunter2'"),
        (&variables[..1], &["--max-waiting=-1"], "'-1'"),
        // The default of this setting is right, so the next mistake is reported.
        (&variables[..1], &["--addr=nowhere"], "'nowhere'"),
    ] {
        let output = serve(environment, arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(said), "{arguments:?}: {complaint}");
    }
}

/// Compose and Kubernetes cannot unset what an image or a template sets.
/// Catches: a complaint about a value that was not given.
#[test]
fn an_empty_variable_counts_as_unset() {
    let names = [
        "PALISADE_LOCK",
        "PALISADE_ISSUER",
        "PALISADE_ADDR",
        "PALISADE_ADMIN_TOKEN",
        "PALISADE_SIGNING_KEYS",
        "PALISADE_AUDIENCE",
        "PALISADE_UNSIGNED",
        "PALISADE_UNFENCED",
        "PALISADE_LIVE_PAGE",
        "PALISADE_MAX_WAITING",
        "PALISADE_REQUEST_TIMEOUT",
        "PALISADE_LOG_FORMAT",
        "RUST_LOG",
    ];
    let empty = names.map(|name| (name, ""));
    let output = serve(&empty, &["--store", "sqlite:/nonexistent/accounts.db"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{complaint}");
    let output = serve(&[("PALISADE_STORE", "")], &["--lock", "sentence"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("--lock"), "{complaint}");
}

/// Catches: a misspelt mode, with which a server is not verified.
#[test]
fn a_mode_of_tls_that_is_none_is_refused() {
    let mode = [("PGSSLMODE", "verify_full")];
    let output = serve(&mode, &["--store", "postgres://127.0.0.1:1/db"]);
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(
        complaint.contains("PGSSLMODE has a bad value"),
        "{complaint}"
    );
}
