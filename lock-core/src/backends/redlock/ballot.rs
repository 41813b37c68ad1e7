//! What the nodes have answered to one try to acquire, and what follows from it.

use std::time::Duration;

use super::{
    nodes::{Answer, Step},
    trouble::Trouble,
};
use crate::FencingToken;

/// The answers to one try.
#[derive(Debug)]
pub(super) struct Ballot {
    nodes: usize,
    majority: usize,
    /// Who has not been heard of.
    pub(super) unheard: Vec<usize>,
    pub(super) granted: Vec<Granted>,
    /// Nodes on which this holder has the lease already, under a token that was raised there.
    again: Vec<(FencingToken, Duration)>,
    /// Nodes on which somebody else has it: for how long, and in which try of theirs.
    held: Vec<(Duration, String)>,
    ended: bool,
    ran_out: usize,
    implausible: Option<String>,
    exhausted: bool,
    broken_counter: bool,
    too_long: Option<String>,
    /// Nodes whose counter has to be made anew, and in which life.
    pub(super) to_heal: Vec<(usize, String)>,
    pub(super) troubles: Vec<(usize, Trouble)>,
}

/// The lease of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) index: usize,
    pub(super) count: FencingToken,
    pub(super) life: String,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Enough nodes granted it.
    Elected,
    /// The acquisition has been granted this token before, and has so much time left.
    Again(FencingToken, Duration),
    /// It has ended before.
    Ended,
    /// Somebody else has it, for so long.
    Held(Duration),
    /// Nobody has enough nodes.
    Split,
    /// A floor above this is implausible.
    Implausible(String),
    /// The counter has reached the greatest token.
    Exhausted,
    /// The counter is none.
    BrokenCounter,
    /// The longest time to live, in ms, is this.
    TooLong(String),
    /// Too few nodes have a part in it.
    TooFew,
}

impl Ballot {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            majority: nodes / 2 + 1,
            unheard: (0..nodes).collect(),
            granted: Vec::with_capacity(nodes),
            again: Vec::new(),
            held: Vec::new(),
            ended: false,
            ran_out: 0,
            implausible: None,
            exhausted: false,
            broken_counter: false,
            too_long: None,
            to_heal: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// Counts an answer.
    pub(super) fn take(&mut self, index: usize, answer: Answer) -> Step {
        self.unheard.retain(|other| *other != index);
        if let Err(trouble) = answer.and_then(|words| self.count(index, &words)) {
            self.troubles.push((index, trouble));
        }
        let elected = self.granted.len() >= self.majority;
        if self.ended || matches!(self.verdict(), Verdict::Again(..)) {
            Step::Done
        } else if elected || self.granted.len() + self.unheard.len() < self.majority {
            Step::Enough
        } else {
            Step::Wait
        }
    }

    fn count(&mut self, index: usize, words: &[String]) -> Result<(), Trouble> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [granted] if granted.contains(':') => {
                let (count, life) = granted.split_once(':').ok_or_else(unreadable)?;
                let count = count.parse().map_err(|_| unreadable())?;
                let life = life.to_owned();
                self.granted.push(Granted { index, count, life });
            }
            ["again", token, left] => {
                let token = token.parse().map_err(|_| unreadable())?;
                self.again.push((token, millis(left)?));
            }
            ["held", left, nonce] => self.held.push((millis(left)?, nonce.to_owned())),
            ["ended"] => self.ended = true,
            ["ran_out"] => self.ran_out += 1,
            ["implausible", greatest] => self.implausible = Some(greatest.to_owned()),
            ["exhausted"] => self.exhausted = true,
            ["broken_counter"] => self.broken_counter = true,
            ["too_long", longest] => self.too_long = Some(longest.to_owned()),
            ["to_heal", life] => {
                self.to_heal.push((index, life.to_owned()));
                return Err(Trouble::ToHeal);
            }
            ["quiet", left] => return Err(Trouble::Quiet(millis(left)?)),
            _ => return Err(unreadable()),
        }
        Ok(())
    }

    pub(super) fn verdict(&self) -> Verdict {
        if self.ended || self.ran_out >= self.majority {
            return Verdict::Ended;
        }
        if let Some((token, left)) = self.again() {
            return Verdict::Again(token, left);
        }
        if self.granted.len() >= self.majority {
            return Verdict::Elected;
        }
        if let Some(longest) = &self.too_long {
            return Verdict::TooLong(longest.clone());
        }
        let absent = self.troubles.len() + self.unheard.len();
        if self.held.is_empty() {
            if let Some(greatest) = &self.implausible {
                return Verdict::Implausible(greatest.clone());
            }
            if self.exhausted {
                return Verdict::Exhausted;
            }
            if self.broken_counter {
                return Verdict::BrokenCounter;
            }
        }
        if self.nodes - absent < self.majority {
            return Verdict::TooFew;
        }
        let of_one = |nonce: &str| self.held.iter().filter(|held| held.1 == nonce).count();
        let most = self.held.iter().map(|(_, nonce)| of_one(nonce)).max();
        match most {
            // It may have those that were not heard of, too.
            Some(most) if most + absent >= self.majority => Verdict::Held(self.held_for()),
            _ => Verdict::Split,
        }
    }

    /// The token that a majority has raised for this holder, and the time for which a majority
    /// keeps it.
    fn again(&self) -> Option<(FencingToken, Duration)> {
        let (token, _) = *self.again.first()?;
        let of_token = self.again.iter().filter(|(other, _)| *other == token);
        let mut left: Vec<_> = of_token.map(|(_, left)| *left).collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        left.get(self.majority - 1).map(|left| (token, *left))
    }

    /// When so many of these leases will have ended that there could be a majority.
    fn held_for(&self) -> Duration {
        let mut left: Vec<_> = self.held.iter().map(|(left, _)| *left).collect();
        left.sort_unstable();
        let others = self.nodes - self.held.len();
        let needed = self.majority.saturating_sub(others);
        let last = left.get(needed.saturating_sub(1)).or(left.last());
        last.copied().unwrap_or_default()
    }
}

pub(super) fn millis(text: &str) -> Result<Duration, Trouble> {
    let millis = text.parse().map_err(|_| unreadable())?;
    Ok(Duration::from_millis(millis))
}

fn unreadable() -> Trouble {
    Trouble::Broken("the answer is not one of our scripts'".to_owned())
}
