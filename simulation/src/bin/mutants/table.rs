use crate::{
    list::Mutant,
    running::{Run, Verdict},
};

/// The table of all runs, printed row by row.
#[derive(Debug)]
pub(crate) struct Table {
    caught: usize,
    survivors: Vec<String>,
}

impl Table {
    pub(crate) fn new() -> Self {
        print_row(["mutant", "promise", "caught by", "schedules", "seconds"]);
        let survivors = Vec::new();
        Self {
            caught: 0,
            survivors,
        }
    }

    pub(crate) fn add(&mut self, mutant: &Mutant, run: &Run) {
        let is_caught = is_caught(mutant, run);
        let unreached = if run.is_reached { "" } else { ", not reached" };
        let (by, schedules) = match &run.verdict {
            Verdict::Caught { by, schedules } if is_caught => (by.clone(), *schedules),
            Verdict::Caught { by, schedules } => {
                (format!("ANOTHER PROMISE: {by}{unreached}"), *schedules)
            }
            Verdict::TimeUp => ("the time limit".to_owned(), None),
            Verdict::Survived => (format!("SURVIVED{unreached}"), None),
            Verdict::Failed(how) => (format!("FAILED: {how}{unreached}"), None),
        };
        let by = match &run.verdict {
            Verdict::TimeUp if !is_caught => format!("SURVIVED until {by}{unreached}"),
            _ => by,
        };
        let schedules = schedules.map_or("-".to_owned(), |schedules| schedules.to_string());
        let seconds = format!("{:.1}", run.took.as_secs_f64());
        print_row([&mutant.name, &mutant.breaks, &by, &schedules, &seconds]);
        match is_caught {
            true => self.caught += 1,
            false => self.survivors.push(mutant.name.clone()),
        }
    }

    /// Whether all were caught.
    pub(crate) fn end(self) -> bool {
        println!("\n{} caught, {} not", self.caught, self.survivors.len());
        if !self.survivors.is_empty() {
            println!("not caught: {}", self.survivors.join(", "));
        }
        self.survivors.is_empty()
    }
}

/// A mutant that was not reached, or that has broken another promise, was caught by chance.
fn is_caught(mutant: &Mutant, run: &Run) -> bool {
    match run.verdict {
        Verdict::Caught { ref by, .. } => run.is_reached && mutant.is_caught_by(by),
        Verdict::TimeUp => mutant.hangs && run.is_reached,
        Verdict::Survived | Verdict::Failed(_) => false,
    }
}

fn print_row([mutant, promise, by, schedules, seconds]: [&str; 5]) {
    println!("{mutant:34} {promise:24} {by:56} {schedules:>9} {seconds:>7}");
}
