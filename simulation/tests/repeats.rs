//! A seed repeats a run: in this process, in another one, and in another build.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use simulation::{plan, schedule};

/// Whether the schedule of this seed runs in one thread.
const fn repeats(seed: &u64) -> bool {
    !schedule::is_over_sqlite(*seed)
}

/// The digests of some schedules of a program, by one process each.
fn digests(program: impl AsRef<OsStr>, seeds: std::ops::Range<u64>) -> Vec<String> {
    let digest = |seed: u64| {
        let mut replay = Command::new(&program);
        replay.args(["--replay", &seed.to_string(), "--json"]);
        let ended = replay.output().unwrap();
        assert!(ended.status.success(), "seed {seed}: {ended:?}");
        let result: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        result["digest"].as_str().unwrap().to_owned()
    };
    seeds.filter(repeats).map(digest).collect()
}

/// The digests of the same schedules here.
fn digests_here(seeds: std::ops::Range<u64>) -> Vec<String> {
    let digest = |seed| {
        let report = schedule::run(&plan::drawn_plan(seed), false);
        format!("{:016x}", report.digest)
    };
    seeds.filter(repeats).map(digest).collect()
}

/// Builds the program that `scripts/prove` runs. After `scripts/prove` it is built already.
fn build_optimized() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let built = Command::new(root.join("scripts/prove"))
        .arg("--build")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    PathBuf::from(String::from_utf8(built.stdout).unwrap().trim())
}

/// Catches: a decision that comes from the clock, from an address, or from the order of a hash map;
/// and lines that change what happens.
#[test]
fn two_runs_of_a_seed_are_the_same() {
    for seed in (0..200).filter(repeats) {
        let plan = plan::drawn_plan(seed);
        let (first, second) = (schedule::run(&plan, true), schedule::run(&plan, true));
        assert_eq!(first.lines, second.lines, "seed {seed}");
        let without = schedule::run(&plan, false);
        assert_eq!(
            [first.digest, second.digest],
            [without.digest; 2],
            "seed {seed}"
        );
        assert!(without.lines.is_empty(), "seed {seed}");
    }
}

/// Catches: two seeds with one schedule. Then a million seeds would be fewer schedules.
#[test]
fn other_seeds_are_other_schedules() {
    let mut digests = digests_here(0..200);
    digests.sort_unstable();
    let all = digests.len();
    digests.dedup();
    assert_eq!(digests.len(), all);
}

/// Catches: a decision that depends on the process, such as a random key of its hash maps.
#[test]
fn another_process_repeats_a_seed() {
    let program = env!("CARGO_BIN_EXE_simulation");
    assert_eq!(digests(program, 0..20), digests_here(0..20));
}

/// Catches: a decision that depends on the build, so that a failure of a nightly run cannot be
/// repeated.
#[test]
fn an_optimized_build_repeats_a_seed() {
    assert_eq!(digests(build_optimized(), 0..20), digests_here(0..20));
}

/// Catches: lines that only people who know the source can read.
#[test]
fn lines_show_no_structure_of_the_source() {
    for seed in 0..100 {
        for line in schedule::run(&plan::drawn_plan(seed), true).lines {
            let line = line.to_string();
            assert!(!line.contains(['{', '}', '(']) || is_work(&line), "{line}");
        }
    }
}

/// The number of a piece of work stands in parentheses, and errors may have some.
fn is_work(line: &str) -> bool {
    !line.contains(['{', '}']) && (line.contains("(work ") || line.contains("  fails "))
}
