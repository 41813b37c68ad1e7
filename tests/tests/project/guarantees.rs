//! Each guarantee needs a test that shows it. So it has a row in tests/guarantees.md, and every
//! test that is named there exists.

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

/// Every function that the test runner calls: functions with an attribute, and cases that a macro
/// turns into tests, with the modules into which it puts them. A function that only such a function
/// calls, or that is never called, is no test.
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

/// How the lists of cases begin in the macros that turn cases into tests.
const LISTS_OF_CASES: [&str; 11] = [
    "conformance_tests!(@cases $module, $harness,\n",
    "rule_cases!($harness:\n",
    "store_cases!($harness:\n",
    "job_cases!($harness:\n",
    "job_pause_cases!($harness:\n",
    "pause_cases!($harness:\n",
    "server_cases!($server:\n",
    "database_cases!($database:\n",
    "crash_cases!($server:\n",
    "on_each_server!(",
    "on_both!(\n",
];

/// Whether the function whose name comes next has the attribute of a test. The attributes and
/// comments of a function are in the lines before it, after the end of another item.
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

/// The names that no test has.
fn missing<'a>(named: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let tests = tests();
    let named = named.into_iter();
    named.filter(|name| !tests.contains(*name)).collect()
}

/// The table of promises and tests.
const TABLE: &str = "tests/guarantees.md";

/// The pages with promises, besides the pages of lock services and databases.
const PAGES: [&str; 2] = ["docs/guarantees.md", "docs/errors.md"];

/// The names of promises: the first cells of tables. Each row has one.
fn promises_in(document: &str) -> Vec<&str> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    let rows = rows.filter(|row| !row.starts_with("| promise |") && !row.starts_with("|---"));
    rows.map(|row| {
        let name = row
            .strip_prefix("| `")
            .and_then(|row| row.split_once("` |"));
        name.unwrap_or_else(|| panic!("no name: {row}")).0
    })
    .collect()
}

/// Catches: a guarantee whose test is gone.
#[test]
fn every_test_that_the_guarantees_name_exists() {
    let documents = tracked_files(Some("md"));
    let table = documents.iter().find(|file| file.path == Path::new(TABLE));
    let named = tests_named_in(&table.unwrap().text);
    assert!(named.len() > 500, "{} names", named.len());
    let missing = missing(named);
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// Catches: a promise, or a problem of docs/errors.md, without a row of tests, and the other way
/// round.
#[test]
fn every_promise_has_its_tests() {
    let documents = tracked_files(Some("md"));
    let mut promised = Vec::new();
    for file in &documents {
        let is_about_one = |folder| file.path.starts_with(folder);
        if PAGES.iter().any(|page| file.path == Path::new(page))
            || ["docs/lock-services", "docs/databases"]
                .into_iter()
                .any(is_about_one)
        {
            promised.extend(promises_in(&file.text));
        }
        if file.path == Path::new("docs/errors.md") {
            let lines = file.text.lines();
            promised.extend(lines.filter_map(|line| line.strip_prefix("## ")));
        }
    }
    let table = documents.iter().find(|file| file.path == Path::new(TABLE));
    let table = &table.unwrap().text;
    let mut tested = promises_in(table);
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        assert!(row.matches('`').count() >= 4, "no test: {row}");
    }
    promised.sort_unstable();
    tested.sort_unstable();
    assert!(promised.len() > 300, "{} promises", promised.len());
    assert_eq!(promised, tested);
}

/// Catches: a promise in another document, such as the story of an outage, that no test has
/// executed.
#[test]
fn every_test_that_other_documents_name_exists() {
    /// Names of settings are shorter.
    const LEAST_WORDS: usize = 6;
    /// A page, or a folder of pages.
    const LEAST_NAMES: [(&str, usize); 3] = [
        ("docs/operations", 20),
        ("docs/protected-tables.md", 12),
        ("docs/fence-your-own-store.md", 2),
    ];
    let documents = tracked_files(Some("md"));
    for (document, least) in LEAST_NAMES {
        let pages = documents
            .iter()
            .filter(|file| file.path.starts_with(document));
        let named: BTreeSet<_> = pages
            .flat_map(|file| tests_named_in(&file.text))
            .filter(|name| name.split('_').count() >= LEAST_WORDS)
            .collect();
        assert!(named.len() >= least, "{document}: {named:?}");
        let missing = missing(named);
        assert!(missing.is_empty(), "{document}: no such tests: {missing:?}");
    }
}
