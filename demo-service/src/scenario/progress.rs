use std::sync::{Mutex, PoisonError};

use super::stage::Stage;
use crate::{
    cli::ScenarioArgs,
    events::{Act, Event, What},
    report::{DIM, HEADING},
};
use palisade_cli::{Console, duration::seconds};
use palisade_gateway::wire::millis;

/// Prints the events while they happen.
#[derive(Debug)]
pub(super) struct Progress {
    console: Console,
    /// With several runs only the verdicts are printed.
    verdicts_only: bool,
    /// The event that was printed last, to know when a new act begins.
    told: Mutex<Option<(u32, Act)>>,
}

impl Progress {
    pub(super) fn new(args: &ScenarioArgs) -> Self {
        Self {
            console: console(args),
            verdicts_only: args.runs > 1,
            told: Mutex::default(),
        }
    }

    /// Prints one event.
    pub(super) fn tell(&self, event: &Event) {
        if self.verdicts_only {
            if let What::Verdict { .. } = event.what {
                let Event { run, act, .. } = event;
                self.console.line(format!("run {run:>3}  {act:8}  {event}"));
            }
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.replace((event.run, event.act)) != Some((event.run, event.act)) {
            self.console
                .line(format!("\n{HEADING}{}{HEADING:#}", event.act.title()));
        }
        if !event.is_behind_the_scenes() {
            self.console
                .line(format!("{DIM}{:>9}{DIM:#}  {event}", seconds(event.at_ms)));
        }
    }
}

/// Prints the story that is going to be played, and its servers.
pub(super) fn announce(args: &ScenarioArgs, stage: &Stage) {
    console(args).line(format!(
        "Lock service: {}; store: {}; lease of {}, client 1 is stopped for {} at least.",
        stage.lock_kind(),
        stage.store_kind(),
        seconds(millis(args.ttl)),
        seconds(millis(args.pause())),
    ));
}

/// The output for progress and time lines: stderr if stdout is for the JSON object.
pub(super) const fn console(args: &ScenarioArgs) -> Console {
    match args {
        ScenarioArgs { quiet: true, .. } => Console::Nowhere,
        ScenarioArgs { json: true, .. } => Console::Stderr,
        _ => Console::Stdout,
    }
}
