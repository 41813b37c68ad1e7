//! The results of all orders.

use std::fmt;

use crate::interleavings::{
    holder::{Check, End},
    order,
    runner::{self, Outcome},
    world::World,
};

/// Counts over the orders of one variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) orders: usize,
    /// How often the stale holder committed after the new holder.
    pub(crate) stale_commits: usize,
    /// How often both committed, and the new holder had not seen the write of the stale holder.
    pub(crate) missed_reads: usize,
    pub(crate) by_stale: usize,
    pub(crate) by_new: usize,
    /// How often a holder had to wait.
    pub(crate) waits: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        let [stale, new] = outcome.ends.map(|end| end == End::Committed);
        let both = stale && new;
        self.orders += 1;
        self.stale_commits += usize::from(both && outcome.new_was_first);
        self.missed_reads += usize::from(both && !outcome.new_saw_stale);
        self.by_stale += usize::from(stale);
        self.by_new += usize::from(new);
        self.waits += usize::from(outcome.waited);
    }
}

/// Goes through all orders.
pub(crate) async fn of_all_orders<W: World>(world: &W, check: Check) -> Tally {
    let mut tally = Tally::default();
    let first_run = match check {
        Check::Fenced => 0,
        Check::PlainSelect => 100,
    };
    for (run, order) in (first_run..).zip(order::all()) {
        tally.add(&runner::run(world, order, check, run).await);
    }
    tally
}

/// The tallies of several variants, which are shown if one of them is wrong.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(String, Check, Tally)>);

impl Table {
    pub(crate) fn add(&mut self, variant: impl Into<String>, check: Check, tally: Tally) {
        self.0.push((variant.into(), check, tally));
    }

    /// Checks that the fence lets no stale holder through, and hinders no current holder.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn assert_fenced_is_sound(&self, variants: usize) {
        let fenced: Vec<_> = self.of(Check::Fenced).collect();
        assert_eq!(fenced.len(), variants);
        for tally in fenced {
            assert_eq!(tally.orders, 70, "{self}");
            assert_eq!((tally.stale_commits, tally.missed_reads), (0, 0), "{self}");
            assert_eq!(tally.by_new, 70, "the new holder was turned away\n{self}");
            assert!(
                tally.by_stale > 0 && tally.waits > 0,
                "nothing ever met\n{self}"
            );
        }
    }

    /// Checks that the control lets both faults happen, so that the runner can see them.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn assert_control_fails(&self, variants: usize) {
        let controls: Vec<_> = self.of(Check::PlainSelect).collect();
        assert_eq!(controls.len(), variants);
        for tally in controls {
            assert_eq!(tally.orders, 70, "{self}");
            assert!(tally.stale_commits > 0 && tally.missed_reads > 0, "{self}");
        }
    }

    fn of(&self, check: Check) -> impl Iterator<Item = &Tally> {
        let of_check = self.0.iter().filter(move |(_, is, _)| *is == check);
        of_check.map(|(_, _, tally)| tally)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<32} {:<12} {:>7} {:>14} {:>13} {:>9} {:>7} {:>6}",
            "variant",
            "check",
            "orders",
            "stale commits",
            "missed reads",
            "by stale",
            "by new",
            "waits"
        )?;
        for (variant, check, tally) in &self.0 {
            writeln!(
                f,
                "{variant:<32} {:<12} {:>7} {:>14} {:>13} {:>9} {:>7} {:>6}",
                format!("{check:?}"),
                tally.orders,
                tally.stale_commits,
                tally.missed_reads,
                tally.by_stale,
                tally.by_new,
                tally.waits
            )?;
        }
        Ok(())
    }
}
