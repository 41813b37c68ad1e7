//! G3, G4 and receipts: the rows of the store are compared with the answers to clients.

use std::collections::BTreeMap;

use super::{
    Finding,
    act::{Act, Outcome, Stored, WriteId},
};
use crate::edge::EDGE;

#[derive(Debug, Default)]
pub(crate) struct Rows {
    writes: BTreeMap<WriteId, Write>,
    marks: BTreeMap<String, u64>,
    /// The greatest token whose claim has returned, by resource.
    claimed: BTreeMap<String, u64>,
    counts: BTreeMap<String, u64>,
    /// The client that has written under a token, by resource and token.
    writers: BTreeMap<(String, u64), u32>,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Write {
    is_stored: bool,
    outcome: Option<Outcome>,
    /// The client that commits the write. The service behind the edge writes for others.
    client: Option<u32>,
}

impl Rows {
    pub(super) fn act(&mut self, client: u32, act: &Act) -> Finding {
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
                let write = self.writes.entry(*write).or_default();
                write.client = (client != EDGE).then_some(client);
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
                let (outcome, client) = (write.outcome, write.client);
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
                    return Some(("store-model", what));
                }
                if let Some(client) = client
                    && let Some(other) = self.other_writer(resource, row.token, client)
                {
                    let what = format!(
                        "client {client} writes {name} under token {} of client {other}",
                        row.token
                    );
                    return Some(("attack-one-token", what));
                }
                matches!(outcome, Some(Outcome::Refused | Outcome::Failed)).then(|| {
                    let what = format!("write {} was {outcome:?}, and is stored later", row.write);
                    ("G9", what)
                })
            }
        }
    }

    /// Another client that has written under the same token.
    fn other_writer(&mut self, resource: &str, token: u64, client: u32) -> Option<u32> {
        let writer = self.writers.entry((resource.to_owned(), token));
        Some(*writer.or_insert(client)).filter(|writer| *writer != client)
    }

    /// The resources that have a mark.
    pub(crate) fn marked(&self) -> Vec<String> {
        self.marks.keys().cloned().collect()
    }

    /// Every committed write is there.
    pub(super) fn end(&self) -> Finding {
        let mut writes = self.writes.iter();
        let lost =
            writes.find(|(_, write)| write.outcome == Some(Outcome::Committed) && !write.is_stored);
        lost.map(|(id, _)| ("store-receipt", format!("write {id} is not stored")))
    }
}
