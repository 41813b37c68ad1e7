/// A string literal of SQL. The names of the vocabulary are ASCII and contain no backslash, so the
/// literal means the same in every database, whatever its settings and the client's encoding are.
pub(crate) fn literal(text: &str) -> String {
    debug_assert!(text.is_ascii() && !text.contains('\\'));
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use lock_core::{Issuer, ResourceName};

    use super::*;

    #[test]
    fn a_quote_in_a_name_stays_inside_its_literal() {
        assert_eq!(literal("a');drop--"), "'a'');drop--'");
    }

    /// The property that `literal` relies on.
    #[test]
    fn a_name_has_no_backslash() {
        assert!(ResourceName::new("a\\b").is_err());
        assert!(Issuer::new("a\\b").is_err());
    }
}
