use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::{address::Address, console::Console, failure::Failure};

/// The findings, in the order of the examination.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Finding>,
    /// The part that is examined now.
    of: &'static str,
    address: String,
}

#[derive(Debug, Serialize)]
struct Finding {
    /// `lock` or `store`.
    of: &'static str,
    /// The address, without passwords.
    address: String,
    level: Level,
    /// The finding.
    text: String,
    /// The change that the operator should make.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Good,
    /// The set-up works, and could be better.
    Advice,
    /// The set-up has to be changed.
    Wrong,
    /// Nothing works.
    Down,
}

impl Level {
    const fn label(self) -> (&'static str, AnsiColor) {
        match self {
            Self::Good => ("good", AnsiColor::Green),
            Self::Advice => ("advice", AnsiColor::Yellow),
            Self::Wrong => ("wrong", AnsiColor::Red),
            Self::Down => ("down", AnsiColor::Red),
        }
    }
}

impl Findings {
    /// Sets the part to which later findings belong.
    pub(super) fn of(&mut self, of: &'static str, address: &Address) {
        self.of = of;
        self.address = address.to_string();
    }

    pub(super) fn good(&mut self, text: impl Display) {
        self.add(Level::Good, text, None);
    }

    pub(super) fn advice(&mut self, text: impl Display, change: &str) {
        self.add(Level::Advice, text, Some(change));
    }

    pub(super) fn wrong(&mut self, text: impl Display, change: &str) {
        self.add(Level::Wrong, text, Some(change));
    }

    /// Adds a finding that is good or wrong.
    pub(super) fn must(&mut self, is_good: bool, text: impl Display, change: &str) {
        if is_good {
            self.good(text);
        } else {
            self.wrong(text, change);
        }
    }

    /// Adds a text that has both the finding and the change.
    pub(super) fn warned(&mut self, text: impl Display) {
        self.add(Level::Advice, text, None);
    }

    pub(super) fn down(&mut self, text: impl Display) {
        self.add(Level::Down, text, None);
    }

    fn add(&mut self, level: Level, text: impl Display, change: Option<&str>) {
        self.found.push(Finding {
            of: self.of,
            address: self.address.clone(),
            level,
            text: text.to_string(),
            change: change.map(str::to_owned),
        });
    }

    fn count(&self, level: Level) -> usize {
        let found = self.found.iter();
        found.filter(|finding| finding.level == level).count()
    }

    /// Prints all findings.
    ///
    /// # Errors
    /// As `doctor`.
    pub(super) fn conclude(self, json: bool) -> Result<(), Failure> {
        let [down, wrong, advice] =
            [Level::Down, Level::Wrong, Level::Advice].map(|level| self.count(level));
        let is_fit = down + wrong == 0;
        if json {
            let all = serde_json::json!({ "fit": is_fit, "findings": self.found });
            Console::Stdout.line(all);
        } else {
            self.print();
        }
        if down > 0 {
            return Err(Failure::Refused("one of them cannot be used".to_owned()));
        }
        if wrong > 0 {
            let told = format!("to change: {wrong}; advice: {advice}");
            return Err(Failure::NotAsTold(told));
        }
        if !json {
            Console::Stdout.line(format!("nothing has to be changed; advice: {advice}"));
        }
        Ok(())
    }

    fn print(&self) {
        let mut told = "";
        for finding in &self.found {
            if finding.of != told {
                Console::Stdout.line(format!("{} {}", finding.of, finding.address));
                told = finding.of;
            }
            let (label, colour) = finding.level.label();
            let style = Style::new().fg_color(Some(colour.into()));
            Console::Stdout.line(format!("  {style}{label:<6}{style:#}  {}", finding.text));
            if let Some(change) = &finding.change {
                Console::Stdout.line(format!("          -> {change}"));
            }
        }
    }
}
