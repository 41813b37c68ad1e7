//! The text of a call as a statement.

use std::fmt::Write as _;

use lock_core::backend::support::{
    database::{Argument, Call},
    fingerprint,
};
use serde_json::Value;

/// The statement of a call. Each text is written in hex, so that no character in it has a special
/// meaning, whatever `sql_mode` and the character set of the session are.
pub(super) fn statement(call: &Call) -> String {
    let mut columns = Vec::new();
    let mut literals = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        match column(argument) {
            Some(column) => columns.push(column),
            None => literals.push(literal(argument)),
        }
    }
    // If there is a list of leases, it is the first argument.
    if !columns.is_empty() {
        literals.insert(0, text_literal(&list(&columns).to_string()));
    }
    format!("CALL fenced_{}({})", call.procedure, literals.join(", "))
}

/// A column of a list, by its name.
fn column(argument: &Argument) -> Option<(&str, Vec<Value>)> {
    match argument {
        Argument::Numbers(name, numbers) => {
            Some((*name, numbers.iter().copied().map(Value::from).collect()))
        }
        Argument::Texts(name, texts) => {
            Some((*name, texts.iter().cloned().map(Value::from).collect()))
        }
        _ => None,
    }
}

/// The list of leases that has these columns, with an object for each lease.
fn list(columns: &[(&str, Vec<Value>)]) -> Value {
    let count = columns.first().map_or(0, |(_, values)| values.len());
    let lease = |place: usize| {
        let cells = columns.iter();
        let cells = cells.map(|(name, values)| ((*name).to_owned(), values[place].clone()));
        Value::Object(cells.collect())
    };
    (0..count).map(lease).collect()
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Flag(flag) => u8::from(*flag).to_string(),
        Argument::Number(Some(number)) => number.to_string(),
        Argument::Small(Some(number)) => number.to_string(),
        Argument::Text(Some(text)) => text_literal(text),
        Argument::Time(time) => time.as_micros().to_string(),
        Argument::Attempts(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| fingerprint(id)).collect();
            text_literal(&ids.join(","))
        }
        _null => "NULL".to_owned(),
    }
}

fn text_literal(text: &str) -> String {
    let mut literal = "_utf8mb4 x'".to_owned();
    for byte in text.bytes() {
        // Writing to a `String` cannot fail.
        write!(literal, "{byte:02x}").unwrap_or_default();
    }
    literal + "'"
}

#[cfg(test)]
mod tests {
    use lock_core::backend::support::database::AnswerShape;

    use super::*;

    fn sent(arguments: Vec<Argument>) -> String {
        statement(&Call {
            procedure: "look",
            arguments,
            answer: AnswerShape::Rows,
        })
    }

    #[test]
    fn a_text_stays_inside_its_literal() {
        let text = Argument::Text(Some("a'); DROP \\".to_owned()));
        assert_eq!(
            sent(vec![
                text,
                Argument::Number(Some(1)),
                Argument::Text(None),
                Argument::Number(None)
            ]),
            "CALL fenced_look(_utf8mb4 x'6127293b2044524f50205c', 1, NULL, NULL)"
        );
    }

    #[test]
    fn a_list_has_an_object_for_each_lease() {
        let texts = Argument::Texts("resource", vec![Some("a".to_owned()), None]);
        let columns = [column(&texts).unwrap(), ("token", vec![1.into(), 2.into()])];
        let list = list(&columns).to_string();
        assert_eq!(
            list,
            r#"[{"resource":"a","token":1},{"resource":null,"token":2}]"#
        );
    }
}
