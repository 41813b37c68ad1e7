//! A call of a procedure of ours, as one statement.

use std::fmt::Write as _;

use lock_core::{ResourceName, backend::support::LeaseNames};

/// A procedure and its arguments. The text has each text in hex: no character in it has a meaning,
/// whatever `sql_mode` and the character set of the session are.
#[derive(Clone, Debug)]
pub(super) struct Call {
    text: String,
    arguments: usize,
}

impl Call {
    pub(super) fn new(procedure: &str) -> Self {
        Self {
            text: format!("CALL fenced_{procedure}("),
            arguments: 0,
        }
    }

    pub(super) fn lease(self, names: &LeaseNames, resource: &ResourceName) -> Self {
        self.text(&names.of(resource))
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.text_or_null(Some(text))
    }

    pub(super) fn text_or_null(mut self, text: Option<&str>) -> Self {
        self.separate();
        match text {
            None => self.text.push_str("NULL"),
            Some(text) => {
                self.text.push_str("_utf8mb4 x'");
                for byte in text.bytes() {
                    // Writing to a `String` cannot fail.
                    write!(self.text, "{byte:02x}").unwrap_or_default();
                }
                self.text.push('\'');
            }
        }
        self
    }

    pub(super) fn number(self, number: i64) -> Self {
        self.number_or_null(Some(number))
    }

    pub(super) fn number_or_null(mut self, number: Option<i64>) -> Self {
        self.separate();
        let number = number.map_or_else(|| "NULL".to_owned(), |number| number.to_string());
        self.text.push_str(&number);
        self
    }

    pub(super) fn statement(mut self) -> String {
        self.text.push(')');
        self.text
    }

    fn separate(&mut self) {
        if self.arguments > 0 {
            self.text.push_str(", ");
        }
        self.arguments += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_inside_its_literal() {
        let call = Call::new("look").text("a'); DROP \\").number(1);
        let call = call.text_or_null(None).number_or_null(None);
        assert_eq!(
            call.statement(),
            "CALL fenced_look(_utf8mb4 x'6127293b2044524f50205c', 1, NULL, NULL)"
        );
    }
}
