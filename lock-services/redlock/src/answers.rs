//! The nodes' answers to one try to acquire, and the decision that follows from them.

use std::time::Duration;

use super::{
    node_error::NodeError,
    nodes::{Answer, Step},
};
use lock_core::FencingToken;

/// The answers to one try.
#[derive(Debug)]
pub(super) struct Answers {
    nodes: usize,
    majority: usize,
    /// Nodes that have not answered yet.
    pub(super) unheard: Vec<usize>,
    pub(super) granted: Vec<Granted>,
    /// The answers of nodes on which this holder already has the lease, under a token that was
    /// raised there.
    again: Vec<(FencingToken, Duration)>,
    /// The answers of nodes on which another holder has the lease: the time left, and the try of
    /// that holder.
    held: Vec<(Duration, String)>,
    /// The number of nodes that do not have the lease that a try by force is about.
    not_held: usize,
    ended: bool,
    ran_out: usize,
    implausible: Option<String>,
    exhausted: bool,
    broken_counter: bool,
    too_long: Option<String>,
    pub(super) errors: Vec<(usize, NodeError)>,
}

/// The lease of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) index: usize,
    pub(super) count: FencingToken,
    pub(super) incarnation: String,
}

/// The decision that follows from the answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Enough nodes granted the lease.
    Elected,
    /// The acquisition was granted this token before, and has this time left.
    Again(FencingToken, Duration),
    /// The acquisition has already ended.
    Ended,
    /// Another holder has the lease, for this time.
    Held(Duration),
    /// The lease that was to be ended is on too few nodes.
    NotHeld,
    /// No holder has enough nodes.
    Split,
    /// A floor above this is implausible.
    Implausible(String),
    /// The counter has reached the greatest token.
    Exhausted,
    /// The counter holds something else.
    BrokenCounter,
    /// The longest time to live, in ms, is this.
    TooLong(String),
    /// Too few nodes take part.
    TooFew,
}

impl Answers {
    /// Whether no node has run the request, and none can still run it.
    pub(super) fn has_run_nowhere(&self) -> bool {
        let may_run = |(_, error): &(usize, NodeError)| error.may_have_run();
        self.granted.is_empty() && self.unheard.is_empty() && !self.errors.iter().any(may_run)
    }

    pub(super) fn new(nodes: usize) -> Self {
        Self {
            nodes,
            majority: nodes / 2 + 1,
            unheard: (0..nodes).collect(),
            granted: Vec::with_capacity(nodes),
            again: Vec::new(),
            held: Vec::new(),
            not_held: 0,
            ended: false,
            ran_out: 0,
            implausible: None,
            exhausted: false,
            broken_counter: false,
            too_long: None,
            errors: Vec::new(),
        }
    }

    /// Counts an answer.
    pub(super) fn take(&mut self, index: usize, answer: Answer) -> Step {
        self.unheard.retain(|other| *other != index);
        if let Err(error) = answer.and_then(|words| self.count(index, &words)) {
            self.errors.push((index, error));
        }
        let elected = self.granted.len() >= self.majority;
        if self.ended || matches!(self.decided(), Decision::Again(..)) {
            Step::Done
        } else if elected || self.granted.len() + self.unheard.len() < self.majority {
            Step::Enough
        } else {
            Step::Wait
        }
    }

    fn count(&mut self, index: usize, words: &[String]) -> Result<(), NodeError> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [granted] if granted.contains(':') => {
                let (count, incarnation) = granted.split_once(':').ok_or_else(unreadable)?;
                let count = count.parse().map_err(|_| unreadable())?;
                let incarnation = incarnation.to_owned();
                self.granted.push(Granted {
                    index,
                    count,
                    incarnation,
                });
            }
            ["again", token, left] => {
                let token = token.parse().map_err(|_| unreadable())?;
                self.again.push((token, millis(left)?));
            }
            ["held", left, nonce] => self.held.push((millis(left)?, nonce.to_owned())),
            ["not_held"] => self.not_held += 1,
            ["ended"] => self.ended = true,
            ["ran_out"] => self.ran_out += 1,
            ["implausible", greatest] => self.implausible = Some(greatest.to_owned()),
            ["exhausted"] => self.exhausted = true,
            ["broken_counter"] => self.broken_counter = true,
            ["too_long", longest] => self.too_long = Some(longest.to_owned()),
            _ => return Err(unreadable()),
        }
        Ok(())
    }

    pub(super) fn decided(&self) -> Decision {
        if self.ended || self.ran_out >= self.majority {
            return Decision::Ended;
        }
        if let Some((token, left)) = self.again() {
            return Decision::Again(token, left);
        }
        if self.granted.len() >= self.majority {
            return Decision::Elected;
        }
        if self.not_held > self.nodes - self.majority {
            return Decision::NotHeld;
        }
        if let Some(longest) = &self.too_long {
            return Decision::TooLong(longest.clone());
        }
        let absent = self.errors.len() + self.unheard.len();
        if self.held.is_empty() {
            if let Some(greatest) = &self.implausible {
                return Decision::Implausible(greatest.clone());
            }
            if self.exhausted {
                return Decision::Exhausted;
            }
            if self.broken_counter {
                return Decision::BrokenCounter;
            }
        }
        if self.nodes - absent < self.majority {
            return Decision::TooFew;
        }
        let of_one = |nonce: &str| self.held.iter().filter(|held| held.1 == nonce).count();
        let most = self.held.iter().map(|(_, nonce)| of_one(nonce)).max();
        match most {
            // The other holder may also have the nodes that have not answered.
            Some(most) if most + absent >= self.majority => Decision::Held(self.held_for()),
            _ => Decision::Split,
        }
    }

    /// The token that a majority has raised for this holder, and the time for which a majority
    /// keeps the lease.
    fn again(&self) -> Option<(FencingToken, Duration)> {
        let (token, _) = *self.again.first()?;
        let of_token = self.again.iter().filter(|(other, _)| *other == token);
        let mut left: Vec<_> = of_token.map(|(_, left)| *left).collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        left.get(self.majority - 1).map(|left| (token, *left))
    }

    /// The time until enough of these leases have ended that another holder could get a majority.
    fn held_for(&self) -> Duration {
        let mut left: Vec<_> = self.held.iter().map(|(left, _)| *left).collect();
        left.sort_unstable();
        let others = self.nodes - self.held.len();
        let needed = self.majority.saturating_sub(others);
        let last = left.get(needed.saturating_sub(1));
        last.copied().unwrap_or_default()
    }
}

pub(super) fn millis(text: &str) -> Result<Duration, NodeError> {
    let millis = text.parse().map_err(|_| unreadable())?;
    Ok(Duration::from_millis(millis))
}

fn unreadable() -> NodeError {
    NodeError::Broken("the answer does not come from a script of Palisade".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: &str = "";

    fn answer(words: &str) -> Answer {
        match words {
            SILENT => Err(NodeError::Silent),
            words => Ok(words.split(' ').map(str::to_owned).collect()),
        }
    }

    /// The step after each of these answers, in this order, and the decision after all of them.
    fn asked<const NODES: usize>(answers: [&str; NODES]) -> (Vec<Step>, Decision) {
        let mut taken = Answers::new(NODES);
        let take = |(index, words)| taken.take(index, answer(words));
        let steps = answers.into_iter().enumerate().map(take).collect();
        assert_eq!(taken.unheard, [0; 0]);
        (steps, taken.decided())
    }

    fn decided<const NODES: usize>(answers: [&str; NODES]) -> Decision {
        asked(answers).1
    }

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn held(millis: u64) -> Decision {
        Decision::Held(Duration::from_millis(millis))
    }

    /// Catches: a majority of the nodes that answer, or of rivals' leases, counts as a majority of
    /// all nodes.
    #[test]
    fn a_majority_of_all_nodes_elects_or_holds_or_the_result_is_unknown() {
        use Decision::{Elected, Split, TooFew};
        let (granted, also) = ("7:incarnation", "8:incarnation");
        let (one, two, three) = ("held 100 x", "held 200 x", "held 300 x");
        let (four, five, rival) = ("held 400 x", "held 500 x", "held 100 y");
        for (answers, expected) in [
            ([granted, granted, granted, one, SILENT], Elected),
            // The other holder may have the silent nodes.
            ([granted, granted, one, SILENT, SILENT], held(100)),
            ([granted, granted, SILENT, SILENT, SILENT], TooFew),
            ([one, one, one, rival, rival], held(100)),
            ([one, one, rival, rival, SILENT], held(100)),
            ([one, one, rival, rival, granted], Split),
            // The resource is held until enough leases have ended that the free nodes are a
            // majority.
            ([five, one, four, two, three], held(300)),
            ([four, one, three, two, granted], held(200)),
            ([three, also, one, two, granted], held(100)),
            ([three, SILENT, two, SILENT, SILENT], TooFew),
        ] {
            assert_eq!(decided(answers), expected, "{answers:?}");
        }
        assert_eq!(decided([granted, granted, one, one]), Split);
        assert_eq!(decided([one, rival, "held 100 z"]), Split);
    }

    /// Catches: the time left of the longest or of the shortest lease counts as the time of the
    /// majority.
    #[test]
    fn the_same_token_on_a_majority_is_granted_again_for_as_long_as_a_majority_keeps_it() {
        let again = |millis| Decision::Again(token(7), Duration::from_millis(millis));
        let (short, long) = ("again 7 100", "again 7 300");
        let answers = [long, "again 7 400", "again 7 200", short, SILENT];
        assert_eq!(decided(answers), again(200));
        let (steps, decided) = asked([long, short, "again 7 200", SILENT, SILENT]);
        assert_eq!(decided, again(100));
        assert_eq!(steps[..3], [Step::Wait, Step::Wait, Step::Done]);
        let two_tokens = [long, "again 8 300", short, SILENT, SILENT];
        assert_eq!(self::decided(two_tokens), Decision::Split);
        let granted_besides = [
            long,
            short,
            "9:incarnation",
            "9:incarnation",
            "9:incarnation",
        ];
        assert_eq!(self::decided(granted_besides), Decision::Elected);
    }

    /// Catches: a late request wins although one node knows that its acquisition was released.
    #[test]
    fn an_acquisition_is_over_if_one_node_saw_it_end_or_it_ran_out_on_a_majority() {
        let granted = "7:incarnation";
        let (steps, decided) = asked([granted, granted, granted, "ended", SILENT]);
        assert_eq!(decided, Decision::Ended);
        assert_eq!(steps[3], Step::Done);
        assert_eq!(
            self::decided(["ran_out", "ran_out", granted, granted, granted]),
            Decision::Elected
        );
        let most = ["ran_out", "ran_out", granted, granted, "ran_out"];
        assert_eq!(self::decided(most), Decision::Ended);
    }

    /// Catches: one node's refusal is returned although a majority has granted, or another holder
    /// has the lease.
    #[test]
    fn a_refusal_counts_if_no_holder_was_elected_and_no_other_has_it() {
        let granted = "7:incarnation";
        for (refusal, expected) in [
            ("implausible 9", Decision::Implausible("9".to_owned())),
            ("exhausted", Decision::Exhausted),
            ("broken_counter", Decision::BrokenCounter),
            ("too_long 5", Decision::TooLong("5".to_owned())),
        ] {
            assert_eq!(decided([refusal, SILENT, SILENT]), expected);
            assert_eq!(decided([refusal, granted, granted]), Decision::Elected);
        }
        let other = "held 100 x";
        for passes in ["implausible 9", "exhausted", "broken_counter"] {
            assert_eq!(decided([passes, other, other]), held(100));
        }
        // A refusal that does not pass, however long a caller waits.
        let never = Decision::TooLong("5".to_owned());
        assert_eq!(decided(["too_long 5", other, other]), never);
    }

    /// Catches: a wait for answers that are not needed any more.
    #[test]
    fn more_answers_are_needed_until_a_majority_has_granted_it_or_cannot_any_more() {
        use Step::{Enough, Wait};
        let (granted, other) = ("7:incarnation", "held 100 x");
        for (answers, expected) in [
            ([granted, granted, granted], [Wait, Wait, Enough]),
            ([other, granted, other], [Wait, Wait, Wait]),
            ([SILENT, SILENT, other], [Wait, Wait, Enough]),
        ] {
            let (steps, _) = asked([answers[0], answers[1], answers[2], SILENT, SILENT]);
            assert_eq!(steps[..3], expected, "{answers:?}");
        }
    }

    /// Catches: a node without state counts as one that grants.
    #[test]
    fn a_node_that_has_no_part_is_an_error() {
        let mut answers = Answers::new(3);
        answers.take(2, Err(NodeError::NoState));
        assert_eq!(answers.unheard, [0, 1]);
        answers.take(0, answer(SILENT));
        assert!(matches!(
            answers.errors[..],
            [(2, NodeError::NoState), (0, NodeError::Silent)]
        ));
        answers.take(1, answer("7:incarnation"));
        assert_eq!(answers.decided(), Decision::TooFew);
        let (index, count, incarnation) = (1, token(7), "incarnation".to_owned());
        assert_eq!(
            answers.granted,
            [Granted {
                index,
                count,
                incarnation
            }]
        );
    }

    /// Catches: half an answer counts as a grant.
    #[test]
    fn an_answer_that_cannot_be_read_is_none() {
        let unreadable = [
            "7",
            "x:incarnation",
            ":incarnation",
            "0:incarnation",
            "7:incarnation 8",
            "again 7",
            "again x 100",
            "again 7 x",
            "held 100",
            "held x y",
            "ended now",
            "nothing",
        ];
        for words in unreadable {
            let mut answers = Answers::new(1);
            answers.take(0, answer(words));
            assert!(
                matches!(answers.errors[..], [(0, NodeError::Broken(_))]),
                "{words}: {answers:?}"
            );
            assert_eq!(answers.decided(), Decision::TooFew);
        }
    }
}
