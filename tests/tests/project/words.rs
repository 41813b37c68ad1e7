//! Words and shapes of sentences that a reader of another mother tongue reads twice. CONTRIBUTING
//! has the rule.

use std::path::Path;

use e2e::project::tracked_files;

/// They name what they refuse.
const NAMES_IT: [&str; 2] = ["tests/tests/project/words", "CONTRIBUTING.md"];

/// Words that leave open who is meant, or hide who acts.
const WORDS: [&str; 6] = [
    "nobody",
    "whoever",
    "is told",
    "are told",
    "was told",
    "were told",
];

/// How a sentence begins whose subject is a clause. A question begins so, too.
const CLAUSES: [&str; 3] = ["What ", "Whoever ", "Who "];

/// What is refused in this line of a document, a comment, an error or a help text.
fn refused(line: &str) -> Option<&'static str> {
    let text = line.trim_start_matches(['/', '!', '*', '-', '#', '>', ' ', '"', '|']);
    let word = WORDS.iter().find(|word| has_word(line, word));
    let clause = || {
        let begins = CLAUSES
            .iter()
            .find(|clause| text.starts_with(**clause) || line.contains(&format!(". {clause}")));
        begins.filter(|_| is_prose(line) && !line.contains('?'))
    };
    word.or_else(clause).copied()
}

/// Names of tests and variables are no words.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let lower = line.to_lowercase();
    lower.match_indices(word).any(|(start, found)| {
        let before = lower[..start].chars().next_back();
        let after = lower[start + found.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Code has no sentences that begin with these words. A heading is no sentence.
fn is_prose(line: &str) -> bool {
    !line.trim_start().starts_with("#")
}

fn is_judged(path: &Path) -> bool {
    let path = path.to_string_lossy();
    !NAMES_IT.iter().any(|own| path.starts_with(own))
}

#[test]
fn sentences_are_read_once() {
    let mut found = Vec::new();
    for file in tracked_files(None) {
        if !is_judged(&file.path) {
            continue;
        }
        let path = file.path.display();
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(what) = refused(line) {
                found.push(format!("{path}:{number}: {what:?} in {line:?}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "see CONTRIBUTING, Words:\n{}",
        found.join("\n")
    );
}

/// Lines that the tree had.
#[test]
fn each_kind_of_sentence_is_refused() {
    for (line, what) in [
        ("/// What whoever asks makes of an answer.", "whoever"),
        (
            "// the failure of somebody who was overtaken is nobody's business.",
            "nobody",
        ),
        (
            "/// before who asks is told that the ttl is too short",
            "is told",
        ),
        ("/// What is no acquire does not wait.", "What "),
        (
            "What was asked for is granted. Who waits is served.",
            "What ",
        ),
        ("//! It ends. Who waits is served.", "Who "),
    ] {
        assert_eq!(refused(line), Some(what), "{line}");
    }
    for line in [
        "/// What does it cost?",
        "async fn nobody_listens_through_a_pooler_and_who_waits_is_served() {",
        "## What does not hold",
        "/// The caller learns what was granted.",
    ] {
        assert_eq!(refused(line), None, "{line}");
    }
}
