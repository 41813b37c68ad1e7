//! The rows of a store whose steps are not seen: judged when all is over.

use std::collections::BTreeMap;

use super::{
    Finding,
    act::{Act, Outcome, Row, WriteId},
};

#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The rows that each write has put into its transaction.
    puts: BTreeMap<WriteId, Vec<String>>,
    outcomes: BTreeMap<WriteId, Outcome>,
    /// The jobs that have run, by their rows.
    ran: BTreeMap<String, u64>,
}

impl Unseen {
    pub(super) fn act(&mut self, act: &Act) -> Finding {
        match act {
            Act::Puts { write, name } => {
                self.puts.entry(*write).or_default().push(name.clone());
                None
            }
            Act::Wrote { write, outcome } => {
                self.outcomes.insert(*write, *outcome);
                None
            }
            Act::Job { row, ran: true, .. } => {
                let runs = self.ran.entry(row.clone()).or_default();
                *runs += 1;
                (*runs > 1).then(|| ("job-once", format!("{row} has run {runs} times")))
            }
            _ => None,
        }
    }

    /// Every committed write is in its rows once, and no refused write is.
    pub(super) fn end(&self, rows: &[(String, Row)]) -> Finding {
        let rows: BTreeMap<_, _> = rows
            .iter()
            .map(|(name, row)| (name.as_str(), row))
            .collect();
        let names = self.puts.values().flatten().chain(self.ran.keys());
        names.map(String::as_str).find_map(|name| {
            let row = rows.get(name).copied().copied().unwrap_or_default();
            self.judged(name, row)
        })
    }

    fn judged(&self, name: &str, row: Row) -> Finding {
        let of_row = |(_, names): &(&WriteId, &Vec<String>)| names.iter().any(|it| it == name);
        let outcomes = self.puts.iter().filter(of_row);
        let outcomes = outcomes.map(|(write, _)| self.outcomes.get(write).copied());
        let (mut least, mut most) = (0, 0);
        for outcome in outcomes {
            least += u64::from(outcome == Some(Outcome::Committed));
            most += u64::from(!matches!(outcome, Some(Outcome::Refused | Outcome::Failed)));
        }
        if !(least..=most).contains(&row.count) {
            let what = format!(
                "{name} was stored {} times, not {least} to {most}",
                row.count
            );
            return Some(("store-receipt", what));
        }
        if let Some(outcome @ (Outcome::Refused | Outcome::Failed)) = self.outcomes.get(&row.write)
            && row.count > 0
        {
            return Some((
                "G9",
                format!("write {} was {outcome:?} and is stored", row.write),
            ));
        }
        let runs = self.ran.get(name).copied().unwrap_or(0);
        if name.starts_with("once/") && (row.count > 1 || row.count < runs) {
            return Some(("job-once", format!("{name} is stored {} times", row.count)));
        }
        (name.starts_with("steps/") && row.count != row.steps).then(|| {
            let what = format!("{name} has {} steps, stored {} times", row.steps, row.count);
            ("job-steps", what)
        })
    }
}
