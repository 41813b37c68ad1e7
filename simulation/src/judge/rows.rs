//! G3, G4 and receipts: what the store has, beside what clients were answered.

use std::collections::BTreeMap;

use super::{
    Finding,
    act::{Act, Outcome, Stored, WriteId},
};

#[derive(Debug, Default)]
pub(crate) struct Rows {
    writes: BTreeMap<WriteId, Write>,
    marks: BTreeMap<String, u64>,
    /// The greatest token whose claim has returned, by resource.
    claimed: BTreeMap<String, u64>,
    counts: BTreeMap<String, u64>,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Write {
    is_stored: bool,
    outcome: Option<Outcome>,
}

impl Rows {
    pub(super) fn act(&mut self, act: &Act) -> Finding {
        match act {
            Act::Holds {
                resource,
                token,
                is_claimed: true,
                ..
            }
            | Act::Claimed { resource, token } => {
                let claimed = self.claimed.entry(resource.clone()).or_default();
                *claimed = std::cmp::max(*claimed, *token);
                None
            }
            Act::Refused { .. } => {
                self.refused += 1;
                None
            }
            Act::Writes { write, .. } => {
                self.writes.entry(*write).or_default();
                None
            }
            Act::Wrote { write, outcome } => self.has_outcome(*write, *outcome),
            _ => None,
        }
    }

    fn has_outcome(&mut self, id: WriteId, outcome: Outcome) -> Finding {
        self.refused += u64::from(outcome == Outcome::Refused);
        self.unknown += u64::from(outcome == Outcome::Unknown);
        let write = self.writes.entry(id).or_default();
        write.outcome = Some(outcome);
        match outcome {
            Outcome::Committed if !write.is_stored => Some((
                "store-receipt",
                format!("write {id} has a receipt and is not stored"),
            )),
            Outcome::Refused | Outcome::Failed if write.is_stored => {
                Some(("G9", format!("write {id} was {outcome:?} and is stored")))
            }
            _ => None,
        }
    }

    pub(super) fn stored(&mut self, stored: &Stored) -> Finding {
        match stored {
            Stored::Mark {
                resource, token, ..
            } => {
                let mark = self.marks.entry(resource.clone()).or_default();
                let fell = *token < *mark;
                let before = std::mem::replace(mark, *token);
                fell.then(|| {
                    let what = format!("the mark of {resource} fell from {before} to {token}");
                    ("store-mark", what)
                })
            }
            Stored::Row {
                name,
                resource,
                row,
                mark,
            } => {
                let count = self.counts.entry(name.clone()).or_default();
                let before = std::mem::replace(count, row.count);
                let write = self.writes.entry(row.write).or_default();
                write.is_stored = true;
                let outcome = write.outcome;
                let claimed = self.claimed.get(resource).copied().unwrap_or(0);
                if row.token < claimed {
                    let what = format!(
                        "{name} is written with {}, after {claimed} was claimed",
                        row.token
                    );
                    return Some(("G4", what));
                }
                if row.token != *mark {
                    let what = format!("{name} is written with {}, the mark is {mark}", row.token);
                    return Some(("G3", what));
                }
                if row.count != before + 1 {
                    let what = format!("{name} goes from {before} to {}", row.count);
                    return Some(("store-lost-update", what));
                }
                matches!(outcome, Some(Outcome::Refused | Outcome::Failed)).then(|| {
                    let what = format!("write {} was {outcome:?}, and is stored later", row.write);
                    ("G9", what)
                })
            }
        }
    }

    /// Every committed write is there.
    pub(super) fn end(&self) -> Finding {
        let mut writes = self.writes.iter();
        let lost =
            writes.find(|(_, write)| write.outcome == Some(Outcome::Committed) && !write.is_stored);
        lost.map(|(id, _)| ("store-receipt", format!("write {id} is not stored")))
    }
}
