use std::{fmt, io::Write};

/// The destination of lines for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Console {
    /// The stdout of this process.
    Stdout,
    /// The stderr of this process.
    Stderr,
    /// Nothing is printed.
    Nowhere,
}

impl Console {
    /// Writes a line, with colours if the stream is a terminal and `NO_COLOR` is not set.
    ///
    /// If the reader has gone away (`| head`), the program goes on: the lines are lost, but its
    /// work is done nevertheless.
    pub fn line(self, text: impl fmt::Display) {
        let written = match self {
            Self::Stdout => writeln!(anstream::stdout(), "{text}"),
            Self::Stderr => writeln!(anstream::stderr(), "{text}"),
            Self::Nowhere => Ok(()),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "the reader of the output has gone away");
        }
    }
}
