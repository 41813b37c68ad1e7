//! A guarantee is worth the test that shows it: every test that docs/guarantees.md names exists.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{collections::BTreeSet, path::Path};

use e2e::project::tracked_files;

/// The names of two words and more in backticks, which in that file are names of tests.
fn tests_named_in(document: &str) -> BTreeSet<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.contains('_')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    quoted.filter(is_name).collect()
}

/// Every function that is in a test, or is a case that a macro makes tests of.
fn functions() -> BTreeSet<String> {
    let mut functions = BTreeSet::new();
    for file in tracked_files(Some("rs")) {
        for (_, rest) in file
            .text
            .match_indices("fn ")
            .map(|(at, _)| file.text.split_at(at + 3))
        {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap();
            functions.insert(rest[..end].to_owned());
        }
    }
    functions
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let documents = tracked_files(Some("md"));
    let guarantees = documents
        .iter()
        .find(|file| file.path.ends_with("docs/guarantees.md"));
    let named = tests_named_in(&guarantees.unwrap().text);
    assert!(
        named.len() > 30,
        "{} names: is this still the right document?",
        named.len()
    );
    let functions = functions();
    // The modules of the conformance tests, which are no functions.
    let modules = [
        "redis_standalone",
        "redis_counting_from_one",
        "redis_sentinel",
        "redis_cluster",
        "redis_least_rights",
        "redis_replicated",
        "redis_scripts",
        "redlock_three",
        "redlock_five",
        "redlock_counting_from_one",
        "zookeeper_standalone",
        "zookeeper_counting_from_one",
        "zookeeper_ensemble",
        "etcd_one_node",
        "etcd_three_nodes",
        "etcd_counting_from_one",
    ];
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !functions.contains(**name) && !modules.contains(name))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// A story of an outage is told by the test that has executed it.
#[test]
fn every_test_that_the_stories_of_operations_name_exists() {
    /// Names of settings are shorter.
    const LEAST_WORDS: usize = 7;
    let documents = tracked_files(Some("md"));
    let operations = documents
        .iter()
        .find(|file| file.path.ends_with("docs/operations.md"));
    let named: Vec<_> = tests_named_in(&operations.unwrap().text)
        .into_iter()
        .filter(|name| name.split('_').count() >= LEAST_WORDS)
        .collect();
    assert!(named.len() > 5, "{named:?}");
    let functions = functions();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !functions.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// What is in the first column of code of a table: kinds of problems.
fn kinds_in(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|row| {
        let kind = row.split('|').nth(2)?.split('`').nth(1)?;
        let is_slug = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        (kind.bytes().all(is_slug) && row[2..5].parse::<u16>().is_ok()).then_some(kind)
    })
    .collect()
}

/// Each kind of problem, and each bad request, has a test that is really there, in that file.
#[test]
fn every_status_is_shown_by_a_test_that_exists() {
    let documents = tracked_files(Some("md"));
    let page = |name: &str| {
        let is_it = |path: &Path| path.ends_with(Path::new("docs/errors").join(name));
        let page = documents.iter().find(|file| is_it(&file.path));
        &page.unwrap().text
    };
    let tests = page("tests.md");
    let listed = kinds_in(tests);
    for kinds in ["README.md", "gateway.md"].map(|name| kinds_in(page(name))) {
        assert!(kinds.len() > 10, "{kinds:?}");
        let missing: Vec<_> = kinds.difference(&listed).collect();
        assert!(missing.is_empty(), "no test is named for {missing:?}");
    }
    let sources = tracked_files(Some("rs"));
    let rows = tests.lines().filter(|line| line.contains(".rs` |"));
    let mut named = 0;
    for row in rows {
        let files = row.split('`').filter(|text| text.ends_with(".rs"));
        let files: Vec<_> = files
            .map(|name| sources.iter().find(|file| file.path.ends_with(name)))
            .collect();
        let settings = ["ttl_ms", "wait_ms"];
        let tests = tests_named_in(row).into_iter();
        for test in tests.filter(|name| !settings.contains(name)) {
            let is_in = |text: &str| text.contains(&format!("fn {test}("));
            let found = files.iter().any(|file| is_in(&file.unwrap().text));
            assert!(found, "{test} is in none of the files of its row");
            named += 1;
        }
    }
    assert!(
        named > 60,
        "{named} names: is this still the right document?"
    );
}
