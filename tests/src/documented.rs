//! Examples in the documentation, which tests run exactly as printed.

use std::fs;

use crate::project::root;

/// The example for this client in `docs/protected-tables.md`.
///
/// # Panics
/// If there is none: the text and its test no longer match.
#[must_use]
pub fn example_for(client: &str) -> String {
    let path = root().join("docs/protected-tables.md");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let example = text
        .split_once(&format!("<!-- {client} -->\n```sql\n"))
        .and_then(|(_, rest)| rest.split_once("```"))
        .map(|(example, _)| example.to_owned());
    example.unwrap_or_else(|| panic!("{} has no example for {client}", path.display()))
}
