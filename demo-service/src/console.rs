use std::{fmt, io::Write};

/// Where lines for people go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Console {
    Stdout,
    Stderr,
    Nowhere,
}

impl Console {
    /// Writes a line, with colours if the stream is a terminal and `NO_COLOR` is not set.
    ///
    /// A reader that has gone away (`| head`) is no reason to end: then the lines are lost, and
    /// what the program came for is done all the same.
    pub(crate) fn line(self, text: impl fmt::Display) {
        let written = match self {
            Self::Stdout => writeln!(anstream::stdout(), "{text}"),
            Self::Stderr => writeln!(anstream::stderr(), "{text}"),
            Self::Nowhere => Ok(()),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "nobody reads what is printed");
        }
    }
}
