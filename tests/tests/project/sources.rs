//! Files stay small enough to be read, and have no text that is useless to their reader.

use e2e::project::tracked_files;

/// Files that people read.
const SOURCES: [&str; 3] = ["rs", "lua", "sql"];
/// Lines of code and comment in one file. Most files are a fraction of it.
const LONGEST_FILE: usize = 600;
const LONGEST_MEDIAN: usize = 150;
/// rustfmt limits the width of code, but not of comments and literals.
const WIDEST_LINE: usize = 100;
/// All that is between spaces in the README, also code and the bars of tables.
const LONGEST_README: usize = 780;
/// Words with a letter or a digit in all pages of `docs`, without the decisions, which are records.
const LONGEST_DOCS: usize = 32_000;

/// Catches: a file that has to be read in parts.
#[test]
fn files_are_short() {
    let mut sizes: Vec<_> = SOURCES
        .into_iter()
        .flat_map(|extension| tracked_files(Some(extension)))
        .map(|file| (file.text.lines().count(), file.path))
        .collect();
    sizes.sort();
    let (median, _) = sizes[sizes.len() / 2];
    println!("{} files, the median has {median} lines", sizes.len());
    for (lines, path) in &sizes {
        assert!(*lines <= LONGEST_FILE, "{}: {lines} lines", path.display());
    }
    assert!(
        median <= LONGEST_MEDIAN,
        "the median file has {median} lines"
    );
}

/// Catches: comments and literals, which rustfmt leaves as they are.
#[test]
fn lines_are_narrow() {
    let mut wide = Vec::new();
    for extension in SOURCES {
        for file in tracked_files(Some(extension)) {
            for (number, line) in (1..).zip(file.text.lines()) {
                if line.chars().count() > WIDEST_LINE {
                    wide.push(format!("{}:{number}", file.path.display()));
                }
            }
        }
    }
    assert!(
        wide.is_empty(),
        "more than {WIDEST_LINE} columns:\n{}",
        wide.join("\n")
    );
}

/// Catches: a page that says again what another page says.
#[test]
fn documents_are_short() {
    let documents = tracked_files(Some("md"));
    let readme = documents
        .iter()
        .find(|file| file.path.as_os_str() == "README.md");
    let readme = readme.unwrap().text.split_whitespace().count();
    assert!(readme <= LONGEST_README, "README.md has {readme} words");
    let is_page = |file: &&e2e::project::SourceFile| {
        file.path.starts_with("docs") && !file.path.starts_with("docs/decisions")
    };
    let words = documents.iter().filter(is_page).flat_map(|file| {
        let words = file.text.split_whitespace();
        words.filter(|word| word.chars().any(char::is_alphanumeric))
    });
    let words = words.count();
    println!("docs has {words} words");
    assert!(words <= LONGEST_DOCS, "docs has {words} words");
}

/// Catches: a test that does not run, which is green for ever.
#[test]
fn no_test_is_switched_off() {
    let mark = ["#[", "ignore"].concat();
    for file in tracked_files(Some("rs")) {
        assert!(
            !file.text.contains(&mark),
            "{} ignores a test",
            file.path.display()
        );
    }
}

/// Catches: paths of somebody's machine and words of somebody's tools. They are written in two
/// halves, so that this file does not find itself.
#[test]
fn no_file_tells_how_it_was_made() {
    let leftovers = [
        ["/wo", "rk/"],
        ["/fa", "rm/"],
        ["/Use", "rs/"],
        ["sub", "agent"],
    ];
    for file in tracked_files(None) {
        for word in leftovers.map(|halves| halves.concat()) {
            let found = file.text.contains(&word);
            assert!(!found, "{} contains `{word}`", file.path.display());
        }
    }
}

/// Catches: a second place that sets `Fencing-Accepted`, which says that a store has compared the
/// token. The edge cannot know this. So only one place sets it, in the crate that knows.
#[test]
fn only_a_receipt_says_that_a_write_was_accepted() {
    let makes = ["Accepted::by", "_receipt("].concat();
    let callers: Vec<_> = tracked_files(Some("rs"))
        .into_iter()
        .flat_map(|file| vec![file.path.clone(); file.text.matches(&makes).count()])
        .collect();
    assert_eq!(
        callers,
        [std::path::Path::new("fenced-store/src/http/accepted.rs")]
    );
}
