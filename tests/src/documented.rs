//! Examples in the documentation, which tests run exactly as printed.

use std::fs;

use crate::project::{files_in, root};

/// The example for this client in `docs/protected-tables.md`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
pub fn example_for(client: &str) -> String {
    example("docs/protected-tables.md", client, "sql")
}

/// The query with this name on one of the pages in `docs/operations`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
pub fn query_for_operators(name: &str) -> String {
    let pages = files_in("docs/operations", "md").into_iter();
    let found = pages.filter_map(|page| find(&page.text, name, "sql"));
    let found: Vec<_> = found.collect();
    let [query] = &found[..] else {
        panic!("docs/operations has {} examples for {name}", found.len())
    };
    query.clone()
}

/// The script with this name in `docs/run.md`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
pub fn script_for_run(name: &str) -> String {
    example("docs/run.md", name, "sh")
}

fn example(document: &str, name: &str, language: &str) -> String {
    let path = root().join(document);
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    find(&text, name, language)
        .unwrap_or_else(|| panic!("{} has no example for {name}", path.display()))
}

fn find(text: &str, name: &str, language: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<!-- {name} -->\n```{language}\n"))?;
    let (example, _) = rest.split_once("```")?;
    Some(example.to_owned())
}
