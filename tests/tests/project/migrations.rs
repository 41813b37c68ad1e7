//! The three dialects of the store have the same themes under the same numbers.

use std::{collections::BTreeMap, fs, path::Path};

use e2e::project::{files_in, root};
use fenced_store::{MySqlFencedStore, PgFencedStore, SqliteFencedStore};

/// The folder of each dialect, and what its store applies.
fn dialects() -> [(&'static str, String); 3] {
    [
        ("postgres", PgFencedStore::migration_script()),
        ("sqlite", SqliteFencedStore::migration_script()),
        ("mysql", MySqlFencedStore::migration_script()),
    ]
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Catches: one number for two themes, or two numbers for one. A dialect may skip a theme.
#[test]
fn a_number_is_one_theme_in_all_dialects() {
    let mut themes = BTreeMap::new();
    for (dialect, _) in dialects() {
        for file in files_in(&format!("migrations/{dialect}"), "sql") {
            let name = name(&file.path);
            let (number, theme) = name.split_once('_').unwrap();
            assert_eq!(number.len(), 4, "{name}");
            let number: usize = number.parse().unwrap();
            let known = themes.entry(number).or_insert_with(|| theme.to_owned());
            assert_eq!(known, theme, "{dialect}: {name}");
        }
    }
    assert!(themes.keys().copied().eq(1..=themes.len()), "{themes:?}");
    let mut names: Vec<_> = themes.values().collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), themes.len(), "{themes:?}");
}

/// Catches: a file that no store applies, or that it applies in another order.
#[test]
fn a_store_applies_all_files_in_the_order_of_their_numbers() {
    for (dialect, mut rest) in dialects() {
        for file in files_in(&format!("migrations/{dialect}"), "sql") {
            let place = rest.find(file.text.trim_end());
            let place = place.unwrap_or_else(|| panic!("{dialect} lacks {}", name(&file.path)));
            rest.drain(..place + file.text.trim_end().len());
        }
    }
}

/// `cargo package` ships what the link in fenced-store leads to.
/// Catches: a package that is published without its SQL.
#[test]
fn fenced_store_links_to_the_migrations() {
    let link = root().join("fenced-store/migrations");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../migrations"));
    for (dialect, _) in dialects() {
        assert!(link.join(dialect).is_dir(), "{dialect}");
    }
}
