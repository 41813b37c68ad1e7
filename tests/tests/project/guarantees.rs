//! A guarantee is worth the test that shows it: every test that docs/guarantees.md names exists.

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

/// Every function that the test runner calls: those with an attribute, and the cases that a macro
/// makes tests of, with the modules that it puts them into. What only such a function calls, or
/// nobody, is no test.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for file in tracked_files(Some("rs")) {
        for (at, _) in file.text.match_indices("fn ") {
            let (before, rest) = file.text.split_at(at + 3);
            if is_marked(before) {
                tests.insert(name_at(rest).to_owned());
            }
        }
        for (at, cases) in LISTS_OF_CASES.map(|list| (file.text.find(list), list)) {
            let Some(at) = at else { continue };
            let list = &file.text[at + cases.len()..];
            let end = list.find(");").unwrap();
            let names = list[..end].split([',', ' ', '\n']);
            tests.extend(names.map(str::to_owned));
        }
        let modules = file.text.match_indices("conformance_tests!(");
        for (_, rest) in modules.map(|(at, start)| file.text.split_at(at + start.len())) {
            tests.insert(name_at(rest.trim_start()).to_owned());
        }
    }
    tests
}

/// What the lists of cases begin with in the macros that make tests of them.
const LISTS_OF_CASES: [&str; 2] = [
    "conformance_tests!(@cases $module, $harness,\n",
    "rule_cases!($harness:\n",
];

/// Whether the function whose name comes next has the attribute of a test. Attributes and comments
/// of a function stand in the lines before it, behind what ends another item.
fn is_marked(before: &str) -> bool {
    let (lines, _) = before.rsplit_once('\n').unwrap_or_default();
    let own = lines.lines().rev().map(str::trim).take_while(|line| {
        let ends_another = line.is_empty() || line.ends_with(['{', '}', ';']);
        line.starts_with("//") || !ends_another
    });
    own.into_iter()
        .any(|line| line == "#[test]" || line.starts_with("#[tokio::test"))
}

fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Names of two words and more that are no tests: methods, and settings.
const METHODS: [&str; 6] = [
    "hand_over",
    "max_hold",
    "max_waiters",
    "reset_high_water",
    "response_timeout",
    "sends_once",
];

/// The names that no test has.
fn missing<'a>(named: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let tests = tests();
    let named = named.into_iter();
    let missing = named.filter(|name| !tests.contains(*name) && !METHODS.contains(name));
    missing.collect()
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
    let missing = missing(named);
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// What is told elsewhere, such as the story of an outage, is told by a test that has executed it.
#[test]
fn every_test_that_other_documents_name_exists() {
    /// Names of settings are shorter.
    const LEAST_WORDS: usize = 6;
    const LEAST_NAMES: [(&str, usize); 4] = [
        ("README.md", 5),
        ("docs/operations.md", 20),
        ("docs/protected-tables.md", 12),
        ("docs/fence-your-own-store.md", 2),
    ];
    let documents = tracked_files(Some("md"));
    for (document, least) in LEAST_NAMES {
        let is_it = |path: &Path| path == Path::new(document);
        let file = documents.iter().find(|file| is_it(&file.path));
        let named: Vec<_> = tests_named_in(&file.unwrap().text)
            .into_iter()
            .filter(|name| name.split('_').count() >= LEAST_WORDS)
            .collect();
        assert!(named.len() >= least, "{document}: {named:?}");
        let missing = missing(named);
        assert!(missing.is_empty(), "{document}: no such tests: {missing:?}");
    }
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
