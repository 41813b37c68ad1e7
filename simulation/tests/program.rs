//! The program: its exit codes, and what it prints.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn simulation(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulation"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = simulation(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

/// Catches: a run that fails although all is well, or that does not say which seeds it had.
#[test]
fn a_run_that_keeps_all_promises_ends_with_0() {
    let (code, text) = run(&["--schedules", "30", "--seed", "7", "--threads", "2"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.starts_with("the first seed is 7\n30 schedules, "),
        "{text}"
    );
    assert!(text.ends_with("every promise was kept\n"), "{text}");
}

/// Catches: a failure that a script does not see, or that cannot be repeated.
#[test]
fn a_broken_promise_ends_with_1_and_shows_the_smallest_plan() {
    let run_on = [
        "--schedules",
        "200",
        "--seed",
        "1",
        "--made-up-promise",
        "--quiet",
    ];
    let (code, text) = run(&run_on);
    assert_eq!(code, Some(1), "{text}");
    let seed = text.split("made-up seed ").nth(1).unwrap();
    let seed = seed.split(':').next().unwrap();
    for words in [
        "the smallest such plan after ",
        "what happens in it:",
        "lock service  ends r",
        &format!("scripts/prove --replay {seed}\n"),
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (code, replayed) = run(&["--replay", seed, "--made-up-promise"]);
    assert_eq!(code, Some(1), "{replayed}");
    assert!(
        replayed.contains(&format!("broken: made-up seed {seed}: ")),
        "{replayed}"
    );

    let (code, json) = run(&[&run_on[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["broken"]), (Some(1), &"made-up".into()));
    assert_eq!(json["seed"].to_string(), seed);
}

/// Catches: wrong arguments with which another run starts than was meant.
#[test]
fn wrong_arguments_and_files_end_with_2() {
    for arguments in [
        &["--schedules", "many"][..],
        &["--replay", "1", "--seed", "2"],
        &["--recording", "file.json"],
        &["--replay", "1", "--recording", "/nowhere/file.json"],
    ] {
        assert_eq!(run(arguments).0, Some(2), "{arguments:?}");
    }
}

/// Catches: a run that reaches half of the situations, and looks as good as a whole one.
#[test]
fn a_situation_that_is_too_rare_ends_with_3() {
    let few = ["--schedules", "3", "--seed", "1", "--made-up-situation"];
    let (code, text) = run(&few);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("too rare: made-up came up 0 times"), "{text}");
    let (code, json) = run(&[&few[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["schedules"].as_u64()), (Some(3), Some(3)));
    assert_eq!(json["too_rare"], serde_json::json!(["made-up"]));
}

/// Catches: a long run that is ended by hand, and does not report the schedules that it has run.
#[test]
fn ctrl_c_prints_what_was_run_and_ends_with_130() {
    let mut night = simulation(&["--minutes", "60", "--seed", "1", "--quiet"]);
    let mut night = night.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(night.stdout.take().unwrap());
    let mut text = String::new();
    // From this line on the program listens to signals.
    output.read_line(&mut text).unwrap();
    let mut kill = Command::new("kill");
    kill.args(["-INT", &night.id().to_string()]);
    assert!(kill.status().unwrap().success());
    output.read_to_string(&mut text).unwrap();
    assert_eq!(night.wait().unwrap().code(), Some(130), "{text}");
    assert!(text.contains(" schedules, "), "{text}");
    assert!(
        text.ends_with("every promise was kept until it was interrupted\n"),
        "{text}"
    );
}

/// Catches: a panic in `| head`, and an exit code that is not the one of the schedule.
#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    for (arguments, code) in [
        (&["--replay", "1"][..], 0),
        (&["--replay", "4", "--made-up-promise"], 1),
        (&["--schedules", "3", "--seed", "7"], 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = simulation(arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {said}");
    }
}
