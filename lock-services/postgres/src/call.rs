//! The text of a call as a statement, in each of the two protocols.

use lock_core::backend::support::database::{AnswerShape, Argument, Call};
use sqlx::{
    Arguments, AssertSqlSafe, Encode, Postgres, SqlSafeStr, SqlStr, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, types::Oid},
};

/// The statement in the simple protocol, which has no parameters, so that a pooler can give it to
/// any session. It sets the isolation level that it needs, whatever the level of the session is. In
/// a transaction that has already read, `SET` comes too late and fails.
pub(super) fn text(call: &Call) -> String {
    let arguments: Vec<_> = call.arguments.iter().map(literal).collect();
    let select = select(call, &arguments, "true");
    format!("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {select}")
}

/// The statement for a session that keeps prepared statements, and is at READ COMMITTED.
pub(super) fn prepared(call: &Call) -> Result<(SqlStr, PgArguments), BoxDynError> {
    let mut arguments = PgArguments::default();
    let mut placeholders = Vec::with_capacity(call.arguments.len());
    for (number, argument) in (1..).zip(&call.arguments) {
        bind(argument, &mut arguments)?;
        placeholders.push(match argument {
            Argument::Time(_) => format!("pg_catalog.to_timestamp(${number})"),
            _ => format!("${number}"),
        });
    }
    arguments.add(Autocommit)?;
    let last = format!("${}", call.arguments.len() + 1);
    let select = select(call, &placeholders, &last);
    Ok((AssertSqlSafe(select).into_sql_str(), arguments))
}

/// A call is a transaction of its own. In a session that was left inside a transaction it is
/// refused, because a rollback would take the lease back. In such a session the type
/// `fenced.autocommit` has no value.
fn select(call: &Call, arguments: &[String], autocommit: &str) -> String {
    let called = format!("fenced.{}({})", call.procedure, arguments.join(", "));
    let select = match call.answer {
        // Only these functions have to be called in `FROM`. There the server stores the rows of a
        // function before it reads them, and that costs more than everything else outside the
        // function.
        AnswerShape::Rows => format!("SELECT answer.* FROM {called} answer"),
        // Without OFFSET the server would call the function once for each column.
        AnswerShape::Row => {
            format!("SELECT (answer.it).* FROM (SELECT {called} AS it OFFSET 0) answer")
        }
        AnswerShape::Outcome => format!("SELECT {called} AS outcome"),
    };
    format!("{select} WHERE {autocommit}::fenced.autocommit")
}

fn literal(argument: &Argument) -> String {
    match argument {
        Argument::Flag(flag) => flag.to_string(),
        Argument::Number(number) => or_null(number.as_ref()),
        Argument::Small(number) => or_null(number.as_ref()),
        Argument::Text(text) => text_literal(text.as_deref()),
        Argument::Time(time) => format!("pg_catalog.to_timestamp({:.6})", time.as_secs_f64()),
        Argument::Numbers(_, numbers) => array(numbers.iter().map(i64::to_string), "bigint"),
        Argument::Texts(_, texts) => texts_literal(texts.iter().map(Option::as_deref)),
        Argument::Attempts(ids) => texts_literal(ids.iter().map(|id| Some(&**id))),
    }
}

fn bind(argument: &Argument, arguments: &mut PgArguments) -> Result<(), BoxDynError> {
    match argument {
        Argument::Flag(flag) => arguments.add(*flag),
        Argument::Number(number) => arguments.add(*number),
        Argument::Small(number) => arguments.add(*number),
        Argument::Text(text) => arguments.add(text.as_deref()),
        Argument::Time(time) => arguments.add(time.as_secs_f64()),
        Argument::Numbers(_, numbers) => arguments.add(numbers),
        Argument::Texts(_, texts) => arguments.add(texts),
        Argument::Attempts(ids) => arguments.add(ids),
    }
}

fn or_null(number: Option<&impl ToString>) -> String {
    number.map_or_else(|| "NULL".to_owned(), ToString::to_string)
}

fn texts_literal<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> String {
    array(texts.map(text_literal), "pg_catalog.text")
}

/// A literal that means the same whatever `standard_conforming_strings` says.
fn text_literal(text: Option<&str>) -> String {
    let Some(text) = text else {
        return "NULL".to_owned();
    };
    let mut literal = String::with_capacity(text.len() + 3);
    if text.contains('\\') {
        literal.push('E');
    }
    literal.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push(character);
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}

fn array(items: impl Iterator<Item = String>, kind: &str) -> String {
    let items: Vec<_> = items.collect();
    format!("ARRAY[{}]::{kind}[]", items.join(", "))
}

/// `true` of the type `fenced.autocommit`. The server knows the type, and checks the value when the
/// statement is bound. At that moment its transaction begins.
struct Autocommit;

impl Type<Postgres> for Autocommit {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Autocommit {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(true, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_inside_its_literal() {
        assert_eq!(text_literal(Some("a');drop--")), "'a'');drop--'");
        assert_eq!(text_literal(Some(r"a\'")), r"E'a\\'''");
    }
}
