//! A figure: the two sides that it compares, and its target.

use std::{fmt, pin::Pin};

use serde::Serialize;

use crate::pinning::Pinning;

pub(crate) use crate::error::BoxError;

/// Measures one figure, with the present pinning and this number of turns of each variant.
pub(crate) type Measure = fn(u32) -> Pin<Box<dyn Future<Output = Result<Measured, BoxError>>>>;

/// One row of the table.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// Which quantity is divided by which.
    pub(crate) what: &'static str,
    pub(crate) target: Target,
    /// The pinning of the target, and then the other pinning if it is measured, too.
    pub(crate) pinnings: &'static [Pinning],
    pub(crate) measure: Measure,
}

/// The target of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The greatest ratio.
    AtMost(f64),
    /// The least ratio.
    AtLeast(f64),
    /// The greatest difference, in nanoseconds. It is used where a ratio would depend mainly on the
    /// other variant.
    AddsAtMost(f64),
    /// No target: the figure is a floor, with which others are compared.
    Reported,
}

/// The result of a measurement.
pub(crate) struct Measured {
    pub(crate) ratio: f64,
    pub(crate) ours: f64,
    pub(crate) other: f64,
    pub(crate) unit: Unit,
}

/// The unit of both measurements.
#[derive(Clone, Copy, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "ns")]
    Nanos,
    #[serde(rename = "us")]
    Micros,
    #[serde(rename = "/s")]
    PerSecond,
    #[serde(rename = "B")]
    Bytes,
}

impl Figure {
    /// Measures the figure in each of its pinnings.
    pub(crate) fn measure(
        &self,
        rounds: u32,
        progress: &str,
    ) -> Result<Vec<(Pinning, Measured)>, BoxError> {
        let pinned = |&pinning| Ok((pinning, self.measure_pinned(pinning, rounds, progress)?));
        self.pinnings.iter().map(pinned).collect()
    }

    fn measure_pinned(
        &self,
        pinning: Pinning,
        rounds: u32,
        progress: &str,
    ) -> Result<Measured, BoxError> {
        eprintln!("[{progress}] {}, {}", self.name, pinning.name());
        pinning.run((self.measure)(rounds))
    }
}

impl Measured {
    /// How much longer our variant takes, if it was measured in nanoseconds.
    pub(crate) fn added_ns(&self) -> Option<f64> {
        matches!(self.unit, Unit::Nanos).then_some(self.ours - self.other)
    }
}

impl Target {
    pub(crate) fn is_met(self, measured: &Measured) -> bool {
        match self {
            Self::AtMost(bound) => measured.ratio <= bound,
            Self::AtLeast(bound) => measured.ratio >= bound,
            Self::AddsAtMost(bound) => measured.added_ns().is_some_and(|added| added <= bound),
            Self::Reported => true,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "<= {bound}"),
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::AddsAtMost(bound) => write!(f, "<= +{bound} ns"),
            Self::Reported => f.write_str("none"),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nanos => " ns",
            Self::Micros => " us",
            Self::PerSecond => " /s",
            Self::Bytes => " B",
        })
    }
}

/// The figures with these names, or all if no names are given.
pub(crate) fn choose<'a>(
    figures: &'a [Figure],
    names: &[String],
) -> Result<Vec<&'a Figure>, BoxError> {
    if let Some(name) = names
        .iter()
        .find(|name| figures.iter().all(|figure| figure.name != name.as_str()))
    {
        let known: Vec<_> = figures.iter().map(|figure| figure.name).collect();
        return Err(format!(
            "no figure is called {name:?}; there are {}",
            known.join(", ")
        )
        .into());
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    Ok(figures
        .iter()
        .filter(|figure| wanted(figure.name))
        .collect())
}
