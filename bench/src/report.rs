//! Prints figures for people and for programs.

use std::error::Error;

use serde_json::{Value, json};

use crate::{
    figure::{BoxError, Figure, Measured, Target},
    pinning::Pinning,
};

/// How figures are printed.
#[derive(Clone, Copy)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Prints figures as they come, and remembers the results.
pub(crate) struct Report {
    format: Format,
    failed: bool,
    missed: bool,
}

impl Report {
    pub(crate) fn start(format: Format) -> Self {
        if matches!(format, Format::Table) {
            println!(
                "{:<24} {:>9}  {:<11} {:<7} {:<11} ours / other",
                "figure", "ratio", "target", "verdict", "pinning"
            );
        }
        Self {
            format,
            failed: false,
            missed: false,
        }
    }

    /// Adds a figure with its measurements: in the pinning of its target, and in the others.
    pub(crate) fn add(
        &mut self,
        figure: &Figure,
        measured: &[(Pinning, Measured)],
    ) -> Result<(), BoxError> {
        let [(pinning, targeted), others @ ..] = measured else {
            return Err("a figure without a pinning".into());
        };
        let met = figure.target.is_met(targeted);
        self.missed |= !met;
        if matches!(self.format, Format::Json) {
            println!("{}", line(figure, *pinning, targeted, others.first(), met));
            return Ok(());
        }
        let verdict = match (figure.target, met) {
            (Target::Reported, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        };
        let target = figure.target.to_string();
        print_row(figure.name, targeted, &target, verdict, *pinning);
        println!("  {}", figure.what);
        for (pinning, measured) in others {
            print_row("", measured, "", "", *pinning);
        }
        Ok(())
    }

    pub(crate) fn failed(&mut self, figure: &Figure, error: &(dyn Error + 'static)) {
        self.failed = true;
        eprintln!("{} cannot be measured: {error}", figure.name);
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    pub(crate) const fn has_missed(&self) -> bool {
        self.missed
    }
}

fn print_row(name: &str, measured: &Measured, target: &str, verdict: &str, pinning: Pinning) {
    let Measured {
        ratio,
        ours,
        other,
        unit,
    } = measured;
    let pinning = pinning.name();
    println!(
        "{name:<24} {ratio:>9.3}  {target:<11} {verdict:<7} {pinning:<11} \
         {ours:.1}{unit} / {other:.1}{unit}"
    );
}

fn line(
    figure: &Figure,
    pinning: Pinning,
    targeted: &Measured,
    other: Option<&(Pinning, Measured)>,
    met: bool,
) -> Value {
    let (at_most, at_least, adds_at_most) = match figure.target {
        Target::AtMost(bound) => (Some(bound), None, None),
        Target::AtLeast(bound) => (None, Some(bound), None),
        Target::AddsAtMost(bound) => (None, None, Some(bound)),
        Target::Reported => (None, None, None),
    };
    let other = other.map(|(pinning, measured)| {
        let (ours, other) = (measured.ours, measured.other);
        json!({"pinning": pinning, "ratio": measured.ratio, "ours": ours, "other": other})
    });
    json!({
        "name": figure.name,
        "ratio": targeted.ratio,
        "pinning": pinning,
        "at_most": at_most,
        "at_least": at_least,
        "added_ns": targeted.added_ns(),
        "adds_at_most": adds_at_most,
        "met": met,
        "ours": targeted.ours,
        "other": targeted.other,
        "unit": targeted.unit,
        "other_pinning": other,
    })
}
