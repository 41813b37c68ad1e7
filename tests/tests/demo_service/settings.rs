//! Flags go before the environment, that before the defaults.

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

/// Each place has a value of its own that is wrong: the complaint tells which one counts.
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
        // The default of this one is right, so the next mistake is told.
        (&variables[..1], &["--addr=nowhere"], "'nowhere'"),
    ] {
        let output = serve(environment, arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(said), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_store_has_to_be_named_somewhere() {
    let output = serve(&[], &["--unsigned"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--store <URL>"), "{said}");
}

#[test]
fn the_help_of_serve_tells_of_all_places() {
    let output = serve(&[], &["--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for word in ["PALISADE_MAX_WAITING", "SIGHUP", "Exit codes:"] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
}

/// What only the build and the tests need.
#[test]
fn the_help_lists_no_tools_of_the_build() {
    let palisade = Command::new(workspace_binary("palisade").unwrap())
        .arg("--help")
        .output();
    let help = String::from_utf8(palisade.unwrap().stdout).unwrap();
    let lists = |name: &str| help.lines().any(|line| line.trim().starts_with(name));
    assert!(lists("serve") && lists("migrations"), "{help}");
    for hidden in ["draw", "openapi", "worker"] {
        assert!(!lists(hidden), "{hidden}: {help}");
    }
}
