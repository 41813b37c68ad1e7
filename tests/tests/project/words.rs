//! Words and shapes of sentences that a reader of another mother tongue reads twice. CONTRIBUTING
//! has the rule. No file is an exception, so this one writes the words in two halves.

use std::path::Path;

use e2e::project::tracked_files;

/// Words that leave open who is meant, or hide who acts.
const WORDS: [[&str; 2]; 6] = [
    ["no", "body"],
    ["who", "ever"],
    ["is ", "told"],
    ["are ", "told"],
    ["was ", "told"],
    ["were ", "told"],
];

/// How a sentence begins whose subject is a clause. A question begins so, too.
const CLAUSES: [[&str; 2]; 3] = [["What", " "], ["Who", "ever "], ["Who", " "]];

fn all(halves: &[[&str; 2]]) -> Vec<String> {
    halves.iter().map(|halves| halves.concat()).collect()
}

/// The part that is refused in this line of a document, a comment, an error or a help text.
fn refused(line: &str) -> Option<String> {
    let text = line.trim_start_matches(['/', '!', '*', '-', '#', '>', ' ', '"', '|']);
    let word = all(&WORDS).into_iter().find(|word| has_word(line, word));
    let clause = || {
        let begins = all(&CLAUSES).into_iter().find(|clause| {
            text.starts_with(clause.as_str()) || line.contains(&format!(". {clause}"))
        });
        begins.filter(|_| is_prose(line) && !line.contains('?'))
    };
    word.or_else(clause)
}

/// The part that is refused in the name of a file or of a folder. A number may come first.
fn refused_in_name(path: &Path) -> Option<String> {
    let names = path.iter().filter_map(|name| name.to_str());
    let mut names = names.map(|name| {
        let words = name.split(['-', '_', '.']);
        let words = words.skip_while(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        format!("{} ", words.collect::<Vec<_>>().join(" "))
    });
    names.find_map(|name| {
        let word = all(&WORDS).into_iter().find(|word| has_word(&name, word));
        let clause = all(&CLAUSES).into_iter();
        word.or_else(|| {
            clause
                .map(|it| it.to_lowercase())
                .find(|it| name.starts_with(it))
        })
    })
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

#[test]
fn sentences_are_read_once() {
    let mut found = Vec::new();
    for file in tracked_files(None) {
        let path = file.path.display();
        if let Some(what) = refused_in_name(&file.path) {
            found.push(format!("{path}: {what:?} in its name"));
        }
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

/// Lines that the tree had. Catches: a kind of sentence that passes.
#[test]
fn each_kind_of_sentence_is_refused() {
    for (halves, what) in [
        (
            ["/// Wh", "at whoev", "er asks makes of an answer."],
            "whoev~er",
        ),
        (
            [
                "// the failure of somebody who was overtaken is nob",
                "ody's",
                " business.",
            ],
            "nob~ody",
        ),
        (
            [
                "/// before the caller is ",
                "told that",
                " the ttl is too short",
            ],
            "is ~told",
        ),
        (["/// Wh", "at is no acquire", " does not wait."], "Wh~at "),
        (["Wh", "at was asked for", " is granted."], "Wh~at "),
        (["//! It ends. Wh", "o waits", " is served."], "Wh~o "),
    ] {
        let line = halves.concat();
        assert_eq!(refused(&line), Some(what.replace('~', "")), "{line}");
    }
    for line in [
        "/// What does it cost?",
        "async fn nobody_listens_through_a_pooler_and_who_waits_is_served() {",
        concat!("## Wh", "at does not hold"),
        "/// The caller learns what was granted.",
    ] {
        assert_eq!(refused(line), None, "{line}");
    }
}

/// Catches: the name of a page whose title was mended.
#[test]
fn each_kind_of_name_is_refused() {
    for (halves, what) in [
        (["docs/0042-wh", "at-a-cycle-costs.md"], "what "),
        (["src/who_is_", "told.rs"], "is ~told"),
        (["src/nob", "ody/mod.rs"], "nob~ody"),
    ] {
        let name = halves.concat();
        assert_eq!(
            refused_in_name(Path::new(&name)),
            Some(what.replace('~', "")),
            "{name}"
        );
    }
    for name in ["docs/0012-a-call-says-only-what-is-rare.md", "src/told.rs"] {
        assert_eq!(refused_in_name(Path::new(name)), None, "{name}");
    }
}
