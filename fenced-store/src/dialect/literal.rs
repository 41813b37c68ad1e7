/// A string literal of SQL. The names of the vocabulary are ASCII and contain no backslash. So the
/// literal means the same in every database, with any settings and any encoding of the client.
pub(crate) fn literal(text: &str) -> String {
    debug_assert!(text.is_ascii() && !text.contains('\\'));
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use lock_core::{Issuer, ResourceName};

    /// `literal` relies on this property.
    /// Catches: a name that would end a literal in a session with old-style strings.
    #[test]
    fn a_name_has_no_backslash() {
        assert!(ResourceName::new("a\\b").is_err());
        assert!(Issuer::new("a\\b").is_err());
    }
}
