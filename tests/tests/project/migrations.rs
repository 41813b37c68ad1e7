//! The three dialects of the store go through the same steps.

use std::{fs, path::Path};

use e2e::project::{files_in, root};

const DIALECTS: [&str; 3] = ["postgres", "sqlite", "mysql"];

fn names(dialect: &str) -> Vec<String> {
    let files = files_in(&format!("migrations/{dialect}"), "sql");
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| name(&file.path)).collect()
}

/// Catches: a migration that one database lacks.
#[test]
fn all_dialects_have_the_same_migrations() {
    let expected = names(DIALECTS[0]);
    assert!(!expected.is_empty());
    for dialect in DIALECTS {
        assert_eq!(names(dialect), expected, "{dialect}");
    }
}

/// Catches: two migrations with one number.
#[test]
fn migrations_are_numbered_without_gaps() {
    for (number, name) in (1..).zip(names(DIALECTS[0])) {
        assert!(
            name.starts_with(&format!("{number:04}_")),
            "{name} should be {number:04}"
        );
    }
}

/// `cargo package` ships what the link in fenced-store leads to.
/// Catches: a package that is published without its SQL.
#[test]
fn fenced_store_links_to_the_migrations() {
    let link = root().join("fenced-store/migrations");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../migrations"));
    for dialect in DIALECTS {
        assert!(link.join(dialect).is_dir(), "{dialect}");
    }
}
