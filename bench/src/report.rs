//! Figures for people and for programs.

use std::error::Error;

use serde::Serialize;

use crate::{
    figure::{BoxError, Figure, Measured, Outcome, Target, Unit},
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

/// A figure as one line of JSON.
#[derive(Serialize)]
struct Line {
    name: &'static str,
    /// In the pinning of the target.
    ratio: f64,
    pinning: Pinning,
    at_most: Option<f64>,
    at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adds_at_most: Option<f64>,
    met: bool,
    ours: f64,
    other: f64,
    unit: Unit,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_pinning: Option<OtherPinning>,
}

#[derive(Serialize)]
struct OtherPinning {
    pinning: Pinning,
    ratio: f64,
    ours: f64,
    other: f64,
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

    pub(crate) fn add(&mut self, figure: &Figure, outcome: &Outcome) -> Result<(), BoxError> {
        let met = figure.target.is_met(&outcome.targeted);
        self.missed |= !met;
        match self.format {
            Format::Table => print_rows(figure, outcome, met),
            Format::Json => {
                println!("{}", serde_json::to_string(&line(figure, outcome, met))?);
            }
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

fn print_rows(figure: &Figure, outcome: &Outcome, met: bool) {
    let target = figure.target.to_string();
    let verdict = match (figure.target, met) {
        (Target::Reported, _) => "",
        (_, true) => "met",
        (_, false) => "MISSED",
    };
    print_row(
        figure.name,
        &outcome.targeted,
        &target,
        verdict,
        figure.pinning,
    );
    println!("  {}", figure.what);
    if let Some((pinning, measured)) = &outcome.other_pinning {
        print_row("", measured, "", "", *pinning);
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

fn line(figure: &Figure, outcome: &Outcome, met: bool) -> Line {
    let (at_most, at_least, adds_at_most) = match figure.target {
        Target::AtMost(bound) => (Some(bound), None, None),
        Target::AtLeast(bound) => (None, Some(bound), None),
        Target::AddsAtMost(bound) => (None, None, Some(bound)),
        Target::Reported => (None, None, None),
    };
    let added_ns = outcome.targeted.added_ns();
    let Measured {
        ratio,
        ours,
        other,
        unit,
    } = outcome.targeted;
    let also = outcome.other_pinning.as_ref();
    Line {
        name: figure.name,
        ratio,
        pinning: figure.pinning,
        at_most,
        at_least,
        added_ns,
        adds_at_most,
        met,
        ours,
        other,
        unit,
        other_pinning: also.map(|(pinning, measured)| OtherPinning {
            pinning: *pinning,
            ratio: measured.ratio,
            ours: measured.ours,
            other: measured.other,
        }),
    }
}
