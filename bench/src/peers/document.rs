//! The measurements and their machine, in one JSON document.

use std::{error::Error, fs, process::Command};

use serde::{Deserialize, Serialize};

use super::{
    libraries::{Language, Library, Service, Toolchains},
    load::{CONTEST, CYCLE, Load, Sample},
    pause::LateWrite,
};
use crate::{error::BoxError, store::cost::Cost};

#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    /// `YYYY-MM-DD`, in UTC.
    pub(super) measured_on: String,
    pub(super) machine: String,
    pub(super) servers: Vec<String>,
    /// The libraries that could not be built or measured, and why.
    pub(super) missing: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// The cost of each protection of a write.
    pub(super) protections: Vec<Cost>,
}

/// A library on a service: medians of all rounds.
#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) library: String,
    pub(super) version: String,
    pub(super) service: Service,
    pub(super) language: Language,
    pub(super) cycle: Figures,
    pub(super) throughput: Figures,
    pub(super) contest: Figures,
    pub(super) late_write: Option<LateWrite>,
}

/// The figures of a sample. Until the document is written, each has the measurements of all rounds.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) per_second: Median,
    pub(super) median_us: Median,
    pub(super) p99_us: Median,
    pub(super) client_cpu_us: Median,
    pub(super) server_cpu_us: Median,
    pub(super) fairness: Median,
}

/// The median of the added values; one number in JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
#[derive(Clone)]
pub(super) struct Median(Vec<f64>);

impl Document {
    pub(super) fn new(toolchains: &Toolchains) -> Result<Self, BoxError> {
        let missing = toolchains.missing.iter();
        Ok(Self {
            measured_on: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            machine: machine()?,
            servers: servers(),
            missing: missing
                .map(|(language, why)| format!("{language:?}: {why}"))
                .collect(),
            rows: Vec::new(),
            protections: Vec::new(),
        })
    }

    /// Notes a library that could not be measured, and prints it at once.
    pub(super) fn fails(&mut self, library: &Library, load: &str, error: &(dyn Error + 'static)) {
        let what = format!("{} on {:?}, {load}", library.name, library.service);
        self.lacks(&what, error);
    }

    /// Notes a measurement that failed, and prints it at once.
    pub(super) fn lacks(&mut self, what: &str, error: &(dyn Error + 'static)) {
        let missing = format!("{what}: {error}");
        eprintln!("cannot be measured: {missing}");
        self.missing.push(missing);
    }
}

impl Row {
    pub(super) fn of(library: &Library) -> Result<Self, BoxError> {
        Ok(Self {
            library: library.name.to_owned(),
            version: library.version()?,
            service: library.service,
            language: library.language,
            cycle: Figures::default(),
            throughput: Figures::default(),
            contest: Figures::default(),
            late_write: None,
        })
    }

    pub(super) fn add(&mut self, load: Load, sample: Sample) {
        let figures = match load {
            CYCLE => &mut self.cycle,
            CONTEST => &mut self.contest,
            _ => &mut self.throughput,
        };
        figures.per_second.0.push(sample.per_second);
        figures.median_us.0.push(sample.median_us);
        figures.p99_us.0.push(sample.p99_us);
        figures.client_cpu_us.0.push(sample.client_cpu_us);
        figures.server_cpu_us.0.push(sample.server_cpu_us);
        figures.fairness.0.push(sample.fairness);
    }

    pub(super) fn is_ours(&self) -> bool {
        self.library.starts_with("palisade")
    }
}

impl Median {
    pub(super) fn get(&self) -> f64 {
        let mut all = self.0.clone();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    }
}

impl From<f64> for Median {
    fn from(median: f64) -> Self {
        Self(vec![median])
    }
}

impl From<Median> for f64 {
    /// More digits would only be noise.
    fn from(median: Median) -> Self {
        (median.get() * 1000.0).round() / 1000.0
    }
}

fn machine() -> Result<String, BoxError> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |line| {
        line.trim_start_matches([' ', '\t', ':'])
    });
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{cores} cores of {model}, Linux {}", kernel.trim()))
}

/// The versions that the servers and the languages report. A missing one is left out.
fn servers() -> Vec<String> {
    let asked: [(&str, &[&str]); 7] = [
        ("redis-server", &["--version"]),
        ("psql", &["--version"]),
        ("etcd", &["--version"]),
        ("rustc", &["--version"]),
        ("go", &["version"]),
        ("java", &["--version"]),
        ("node", &["--version"]),
    ];
    let first_line = |(program, arguments): (&str, &[&str])| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        // After this come hashes and names of packages.
        let line = text.lines().next()?.split(" sha=").next()?;
        let line = line
            .strip_suffix(')')
            .and_then(|line| line.rsplit_once(" ("))
            .map_or(line, |(line, _)| line)
            .to_owned();
        Some(if program == "node" {
            format!("Node.js {line}")
        } else {
            line
        })
    };
    asked.into_iter().filter_map(first_line).collect()
}
