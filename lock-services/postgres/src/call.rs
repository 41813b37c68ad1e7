//! A call of a function of ours, in either protocol.

use std::{fmt::Write as _, time::Duration};

use lock_core::{ResourceName, backend::support::LeaseNames};
use sqlx::{
    Arguments, AssertSqlSafe, Encode, Postgres, SqlSafeStr, SqlStr, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo, types::Oid},
};

/// A function of the schema `fenced`, and its arguments. It is a transaction of its own: a session
/// that was left inside a transaction is refused, because its rollback would take the lease back.
/// There the type `fenced.autocommit` has no value.
#[derive(Clone, Debug)]
pub(super) struct Call {
    function: &'static str,
    arguments: Vec<Value>,
    result: ResultShape,
}

/// The result of a function. Only the first kind has to be called in `FROM`, where the server keeps
/// the rows of a function before it reads them. That costs more than all else outside the function.
#[derive(Clone, Copy, Debug)]
enum ResultShape {
    Rows,
    /// One row of several columns.
    Row,
    /// One row of one column, `outcome`.
    Outcome,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Flag(bool),
    Number(Option<i64>),
    Small(Option<i32>),
    Text(Option<String>),
    /// The name of a lease; of a resource, until it is [complete](Call::of).
    Lease(Option<String>),
    Leases(Vec<String>),
    Numbers(Vec<i64>),
    Texts(Vec<Option<String>>),
    /// Since the beginning of 1970.
    Time(Duration),
}

impl Call {
    pub(super) const fn new(function: &'static str) -> Self {
        Self::of_shape(function, ResultShape::Rows)
    }

    /// For a function that returns exactly one row, of several columns.
    pub(super) const fn of_a_row(function: &'static str) -> Self {
        Self::of_shape(function, ResultShape::Row)
    }

    /// For a function that returns a text, the column `outcome`.
    pub(super) const fn of_outcome(function: &'static str) -> Self {
        Self::of_shape(function, ResultShape::Outcome)
    }

    const fn of_shape(function: &'static str, result: ResultShape) -> Self {
        let arguments = Vec::new();
        Self {
            function,
            arguments,
            result,
        }
    }

    pub(super) fn with(mut self, argument: impl Into<Value>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// For the leases of this prefix.
    pub(super) fn of(mut self, names: &LeaseNames) -> Self {
        for argument in &mut self.arguments {
            match argument {
                Value::Lease(lease) => lease.iter_mut().for_each(|lease| names.complete(lease)),
                Value::Leases(leases) => leases.iter_mut().for_each(|lease| names.complete(lease)),
                _ => {}
            }
        }
        self
    }

    /// For the simple protocol, which has no parameters, and which a pooler can give to any
    /// session: at the isolation level that it needs, whatever that of the session is. In a
    /// transaction that has read anything, `SET` comes too late.
    pub(super) fn text(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(Value::literal).collect();
        let select = self.select(&arguments, "true");
        format!("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; {select}")
    }

    /// For a session that keeps prepared statements, and is at READ COMMITTED.
    pub(super) fn prepared(&self) -> Result<(SqlStr, PgArguments), BoxDynError> {
        let mut arguments = PgArguments::default();
        let mut placeholders = Vec::with_capacity(self.arguments.len());
        for (number, argument) in (1..).zip(&self.arguments) {
            argument.bind(&mut arguments)?;
            placeholders.push(match argument {
                Value::Time(_) => format!("pg_catalog.to_timestamp(${number})"),
                _ => format!("${number}"),
            });
        }
        arguments.add(Autocommit)?;
        let last = format!("${}", self.arguments.len() + 1);
        let select = self.select(&placeholders, &last);
        Ok((AssertSqlSafe(select).into_sql_str(), arguments))
    }

    fn select(&self, arguments: &[String], autocommit: &str) -> String {
        let called = format!("fenced.{}({})", self.function, arguments.join(", "));
        let select = match self.result {
            ResultShape::Rows => format!("SELECT answer.* FROM {called} answer"),
            // Without OFFSET the server would call the function once for each column.
            ResultShape::Row => {
                format!("SELECT (answer.it).* FROM (SELECT {called} AS it OFFSET 0) answer")
            }
            ResultShape::Outcome => format!("SELECT {called} AS outcome"),
        };
        format!("{select} WHERE {autocommit}::fenced.autocommit")
    }
}

impl Value {
    fn literal(&self) -> String {
        match self {
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => or_null(number.as_ref()),
            Self::Small(number) => or_null(number.as_ref()),
            Self::Text(text) | Self::Lease(text) => text_literal(text.as_deref()),
            Self::Numbers(numbers) => array(numbers.iter().map(i64::to_string), "bigint"),
            Self::Leases(leases) => {
                let literals = leases.iter().map(|lease| text_literal(Some(lease)));
                array(literals, "pg_catalog.text")
            }
            Self::Texts(texts) => {
                let literals = texts.iter().map(|text| text_literal(text.as_deref()));
                array(literals, "pg_catalog.text")
            }
            Self::Time(time) => format!("pg_catalog.to_timestamp({:.6})", time.as_secs_f64()),
        }
    }

    fn bind(&self, arguments: &mut PgArguments) -> Result<(), BoxDynError> {
        match self {
            Self::Flag(flag) => arguments.add(*flag),
            Self::Number(number) => arguments.add(*number),
            Self::Small(number) => arguments.add(*number),
            Self::Text(text) | Self::Lease(text) => arguments.add(text.as_deref()),
            Self::Leases(leases) => arguments.add(leases),
            Self::Numbers(numbers) => arguments.add(numbers),
            Self::Texts(texts) => arguments.add(texts),
            Self::Time(time) => arguments.add(time.as_secs_f64()),
        }
    }
}

macro_rules! values {
    ($($from:ty => $value:expr;)*) => {
        $(impl From<$from> for Value {
            fn from(from: $from) -> Self {
                $value(from)
            }
        })*
    };
}

values! {
    bool => Value::Flag;
    i64 => |number| Value::Number(Some(number));
    String => |text| Value::Text(Some(text));
    Option<i64> => Value::Number;
    Option<i32> => Value::Small;
    Option<String> => Value::Text;
    Vec<i64> => Value::Numbers;
    Vec<Option<String>> => Value::Texts;
    Vec<String> => |texts: Vec<String>| Value::Texts(texts.into_iter().map(Some).collect());
    &ResourceName => |resource: &ResourceName| Value::Lease(Some(resource.to_string()));
    Option<&ResourceName> => |resource: Option<&ResourceName>| {
        Value::Lease(resource.map(ToString::to_string))
    };
}

fn or_null(number: Option<&impl ToString>) -> String {
    number.map_or_else(|| "NULL".to_owned(), ToString::to_string)
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
    let mut array = "ARRAY[".to_owned();
    for (index, item) in items.enumerate() {
        if index > 0 {
            array.push_str(", ");
        }
        array.push_str(&item);
    }
    // Writing to a `String` cannot fail.
    write!(array, "]::{kind}[]").unwrap_or_default();
    array
}

/// `true` of the type `fenced.autocommit`. The server knows the type, and looks at the value when
/// the statement is bound, which is when its transaction begins.
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
