//! The contract of lock services and the cases that check it name each other.

use std::collections::{BTreeMap, BTreeSet};

use e2e::project::{SourceFile, tracked_files};

const CONTRACT: &str = "lock-core/src/backend.rs";
const CONFORMANCE: &str = "lock-testing/src/conformance";
const CASE_LIST: &str = "lock-testing/src/conformance/mod.rs";

/// The numbered clauses of the contract, each with the cases that it names in parentheses:
/// ``/// 8. **Waiting** (`waits_until_release`, `wait_deadline`). ..``
fn clauses(contract: &str) -> BTreeMap<u32, Vec<String>> {
    let prose: Vec<_> = contract
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "/// # Contract")
        .skip(1)
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .take_while(|line| !line.starts_with("# "))
        .collect();
    let mut texts = BTreeMap::<u32, String>::new();
    for line in prose {
        if let Some((number, text)) = line.split_once(". **") {
            texts.insert(number.parse().unwrap(), text.to_owned());
        } else if let Some(mut clause) = texts.last_entry() {
            // A line that continues the clause before it.
            clause.get_mut().push(' ');
            clause.get_mut().push_str(line);
        }
    }
    let named = |text: &str| {
        let (_, rest) = text.split_once("** (")?;
        let (names, _) = rest.split_once(')')?;
        let cases = names.split(',').map(str::trim);
        let cases = cases.filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'));
        Some(cases.map(str::to_owned).collect())
    };
    let clauses = texts.into_iter();
    clauses
        .map(|(number, text)| (number, named(&text).unwrap_or_default()))
        .collect()
}

/// The public async functions of the conformance module, with the doc comment of each.
fn cases(files: &[SourceFile]) -> BTreeMap<String, String> {
    let mut cases = BTreeMap::new();
    for file in files {
        let mut doc = String::new();
        for line in file.text.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("///") {
                doc.push_str(text);
            } else if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name: String = rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                cases.insert(name, std::mem::take(&mut doc));
            } else if !line.starts_with("#[") {
                doc.clear();
            }
        }
    }
    cases
}

/// The 7 of `Clause 7: ..`. A case about an extension that a backend claims has no clause.
fn clause_of(doc: &str) -> Option<u32> {
    let (number, _) = doc.trim_start().strip_prefix("Clause ")?.split_once(':')?;
    number.parse().ok()
}

fn contract() -> BTreeMap<u32, Vec<String>> {
    let files = tracked_files(Some("rs"));
    let file = files
        .iter()
        .find(|file| file.path.ends_with(CONTRACT))
        .unwrap();
    clauses(&file.text)
}

fn conformance() -> BTreeMap<String, String> {
    let mut files = tracked_files(Some("rs"));
    files.retain(|file| file.path.starts_with(CONFORMANCE));
    cases(&files)
}

/// Catches: a clause that nothing checks.
#[test]
fn each_clause_names_the_case_that_checks_it() {
    let clauses = contract();
    let numbers: Vec<_> = clauses.keys().copied().collect();
    assert!(numbers.len() >= 12, "clauses found: {numbers:?}");
    assert_eq!(
        numbers,
        (1..=u32::try_from(numbers.len()).unwrap()).collect::<Vec<_>>()
    );
    let cases = conformance();
    for (number, named) in clauses {
        assert!(!named.is_empty(), "clause {number} names no case");
        for case in named {
            assert!(
                cases.contains_key(&case),
                "clause {number} names `{case}`: no such case"
            );
        }
    }
}

/// Catches: a case that says it checks another clause.
#[test]
fn each_case_says_which_clause_it_checks() {
    let clauses = contract();
    for (case, doc) in conformance() {
        let says = clause_of(&doc);
        if let Some(number) = says {
            assert!(
                clauses.contains_key(&number),
                "`{case}`: no clause {number}"
            );
        }
        for (number, _) in clauses.iter().filter(|(_, named)| named.contains(&case)) {
            assert_eq!(
                says,
                Some(*number),
                "the first words of the comment of `{case}`"
            );
        }
    }
}

/// Catches: a case that the macro forgets, and which is never run.
#[test]
fn each_case_is_run() {
    let files = tracked_files(Some("rs"));
    let file = files
        .iter()
        .find(|file| file.path.ends_with(CASE_LIST))
        .unwrap();
    let (_, list) = file.text.split_once("conformance_tests!(@cases").unwrap();
    let (list, _) = list.split_once(");").unwrap();
    let listed: BTreeSet<_> = list.split_whitespace().collect();
    for case in conformance().keys() {
        assert!(
            listed.contains(case.as_str()),
            "`{case}` is not in `conformance_tests!`"
        );
    }
}
