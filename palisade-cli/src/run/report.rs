//! The output about a run. It goes to stderr, because stdout belongs to the command.

use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::{cli::RunArgs, console::Console};

/// The part of the output that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Only failures, because cron sends a mail for each line.
    Failures,
    /// Failures, and the reasons why a command was not run.
    Notices,
    /// Failures, reasons and each step.
    Everything,
    /// Each step and each failure, one object per line.
    Json,
}

impl Report {
    pub(super) fn of(args: &RunArgs) -> Self {
        match (args.json, args.verbose) {
            (true, _) => Self::Json,
            (_, true) => Self::Everything,
            _ if std::io::stderr().is_terminal() => Self::Notices,
            _ => Self::Failures,
        }
    }

    /// A step of a run that goes well.
    pub(super) fn step(self, event: &str, more: Value, text: &str) {
        self.print(self == Self::Everything, event, more, text);
    }

    /// The reason why the command is not run, which is no failure.
    pub(super) fn notice(self, event: &str, more: Value, text: &str) {
        self.print(self != Self::Failures, event, more, text);
    }

    pub(super) fn failure(self, event: &str, more: Value, text: &str) {
        self.print(true, event, more, text);
    }

    fn print(self, is_wanted: bool, event: &str, more: Value, text: &str) {
        if self == Self::Json {
            let mut object = json!({ "event": event });
            if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
                object.extend(more);
            }
            Console::Stderr.line(object);
        } else if is_wanted {
            Console::Stderr.line(format!("palisade: {text}"));
        }
    }
}
