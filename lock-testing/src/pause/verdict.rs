use std::fmt;

use super::simulation::PausedAt;

/// The invariant held after every pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passed {
    /// The number of awaits of the section. It was paused at each of them.
    pub awaits: usize,
    /// The number of pauses after which the section ended with an error, such as a refusal of the
    /// store.
    pub refused: usize,
}

/// The invariant did not hold after some pauses. The message names the pauses.
#[derive(Clone, Debug)]
pub struct Broken {
    at: Vec<PausedAt>,
}

/// The number of pauses that the message shows. Pauses often have one cause.
const SHOWN: usize = 5;

impl Passed {
    pub(super) const fn new(awaits: usize, refused: usize) -> Self {
        Self { awaits, refused }
    }
}

impl Broken {
    pub(super) const fn new(at: Vec<PausedAt>) -> Self {
        Self { at }
    }

    /// The numbers of the awaits, counted from 1.
    #[must_use]
    pub fn awaits(&self) -> Vec<usize> {
        self.at.iter().map(|at| at.number).collect()
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the invariant is broken by a pause at ")?;
        for (index, at) in self.at.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { ", or at " };
            write!(f, "{separator}{at}")?;
        }
        match self.at.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, ", or at {more} more"),
        }
    }
}

impl std::error::Error for Broken {}
