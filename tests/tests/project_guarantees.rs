//! A guarantee is worth the test that shows it: every test that docs/guarantees.md names exists.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::BTreeSet;

use e2e::project::tracked_files;

/// The names of two words and more in backticks, which in that file are names of tests.
fn tests_named_in(document: &str) -> BTreeSet<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_name = |text: &&str| {
        text.contains('_')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
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
