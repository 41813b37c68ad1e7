//! Examples in the documentation, which tests run exactly as printed.

use std::fs;

use crate::project::root;

/// The example for this client in `docs/protected-tables.md`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
pub fn example_for(client: &str) -> String {
    example("docs/protected-tables.md", client, "sql")
}

/// The query with this name in `docs/operations.md`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
pub fn query_for_operators(name: &str) -> String {
    example("docs/operations.md", name, "sql")
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
    let example = text
        .split_once(&format!("<!-- {name} -->\n```{language}\n"))
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(example, _)| example.to_owned());
    example.unwrap_or_else(|| panic!("{} has no example for {name}", path.display()))
}
