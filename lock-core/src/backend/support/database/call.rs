use std::time::Duration;

/// A call of a function or procedure of the lock service. Each database has its own syntax for it.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a lock service writes it")]
pub struct Call {
    /// The name of the procedure, without the schema or the prefix that it has in the database.
    pub procedure: &'static str,
    /// The arguments, in their order.
    pub arguments: Vec<Argument>,
    /// The shape of the answer.
    pub answer: AnswerShape,
}

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a lock service tells them apart")]
pub enum AnswerShape {
    /// Any number of rows.
    Rows,
    /// Exactly one row of several columns.
    Row,
    /// One row of one column, `outcome`.
    Outcome,
}

/// An argument of a call.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a lock service writes each of them"
)]
pub enum Argument {
    /// True or false.
    Flag(bool),
    /// A number, or null.
    Number(Option<i64>),
    /// A number of 32 bits, or null.
    Small(Option<i32>),
    /// A text, or null.
    Text(Option<String>),
    /// A time since the beginning of 1970.
    Time(Duration),
    /// The IDs of attempts.
    Attempts(Vec<String>),
    /// A column of a list of leases, with its name. All columns of a call are of one list.
    Numbers(&'static str, Vec<i64>),
    /// A column of texts.
    Texts(&'static str, Vec<Option<String>>),
}

impl Call {
    /// A call without arguments that answers with rows.
    #[must_use]
    pub const fn new(procedure: &'static str) -> Self {
        Self {
            procedure,
            arguments: Vec::new(),
            answer: AnswerShape::Rows,
        }
    }

    pub(super) const fn answering(mut self, answer: AnswerShape) -> Self {
        self.answer = answer;
        self
    }

    pub(super) fn with(mut self, argument: Argument) -> Self {
        self.arguments.push(argument);
        self
    }

    pub(super) fn text(self, text: impl Into<Option<String>>) -> Self {
        self.with(Argument::Text(text.into()))
    }

    pub(super) fn number(self, number: impl Into<Option<i64>>) -> Self {
        self.with(Argument::Number(number.into()))
    }
}
