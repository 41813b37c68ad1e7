//! Each metric that operators should watch is exported, and every alarm says which action to take.

use std::{collections::BTreeSet, fs, process::Command};

use e2e::project::{root, tracked_files};
use lock_core::backend::metric::{self, MetricKind};

/// A page of `docs/operations`.
fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/operations").join(name)).unwrap()
}

/// The cells of the rows of all tables.
fn rows(document: &str) -> Vec<Vec<&str>> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

/// The words that begin like the name of a metric.
fn named_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("palisade_")).collect()
}

/// Catches: a metric that is documented and not exported, or the reverse.
#[test]
fn the_table_of_metrics_is_what_is_exported() {
    let document = page("metrics.md");
    let told: BTreeSet<_> = rows(&document)
        .into_iter()
        .filter(|row| row[0].starts_with("`palisade_"))
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].to_owned()))
        .collect();
    let exported = metric::OF_LOCKS
        .iter()
        .chain(metric::OF_STORES)
        .chain(metric::OF_EDGES)
        .map(|metric| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
                other => panic!("say here what {other:?} is called"),
            };
            (metric.name.to_owned(), kind.to_owned())
        });
    assert_eq!(told, exported.collect());
}

/// Catches: an alarm that never fires, or has no text.
#[test]
fn every_alarm_is_about_something_exported_and_has_a_section() {
    let document = page("alarms.md");
    let exported: BTreeSet<_> = metric::OF_LOCKS
        .iter()
        .chain(metric::OF_STORES)
        .chain(metric::OF_EDGES)
        .map(|metric| metric.name)
        .collect();
    for name in named_in(&document) {
        let name = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(exported.contains(name), "nothing exports {name}");
    }
    let alarms: BTreeSet<_> = rows(&document)
        .into_iter()
        .filter(|row| row[0].contains("](#"))
        .map(|row| {
            let (name, link) = row[0].trim_matches(['[', ')']).split_once("](#").unwrap();
            assert_eq!(name.to_lowercase(), link);
            assert!(!named_in(row[1]).is_empty(), "{name} watches nothing");
            name
        })
        .collect();
    let sections = document.lines().filter_map(|line| line.strip_prefix("## "));
    assert!(alarms.len() > 5);
    assert_eq!(alarms, sections.collect());
}

fn deployed(name: &str) -> String {
    fs::read_to_string(root().join("deploy").join(name)).unwrap()
}

/// Catches: a rule that was changed in one of the two places, or that `promtool` has not tried.
#[test]
fn the_rules_of_prometheus_are_the_alarms_of_the_documentation() {
    let document = page("alarms.md");
    let (rules, tried) = (deployed("alarms.yaml"), deployed("alarms.test.yaml"));
    let all = rows(&document);
    for alarm in all.iter().filter(|row| row[0].contains("](#")) {
        let (name, _) = alarm[0].trim_matches('[').split_once(']').unwrap();
        let from = rules.split_once(&format!("alert: {name}\n")).unwrap().1;
        let expression = from.split_once("expr: ").unwrap().1.lines().next().unwrap();
        let told = alarm[1].split('`').nth(1).unwrap();
        assert!(
            expression.contains(told),
            "{name}: {expression}, and not {told}"
        );
        assert!(
            tried.contains(&format!("alertname=\"{name}\"")),
            "{name} is not tried"
        );
    }
    let status = Command::new("promtool")
        .args(["test", "rules", "alarms.test.yaml"])
        .current_dir(root().join("deploy"))
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
}

/// Catches: a panel with an old name of a metric.
#[test]
fn the_dashboard_shows_what_is_exported_and_all_of_it() {
    let dashboard = deployed("grafana.json");
    let shown: BTreeSet<_> = named_in(&dashboard)
        .into_iter()
        .map(|name| name.strip_suffix("_bucket").unwrap_or(name))
        .collect();
    let exported = metric::OF_LOCKS
        .iter()
        .chain(metric::OF_STORES)
        .chain(metric::OF_EDGES)
        .map(|metric| metric.name)
        .filter(|name| *name != "palisade_handoffs_total");
    assert_eq!(shown, exported.collect());
}

/// Catches: a metric that users cannot find.
#[test]
fn the_documentation_of_the_names_lists_them_all() {
    let files = tracked_files(Some("rs"));
    let source = files
        .iter()
        .find(|file| file.path.ends_with("lock-core/src/backend/metric.rs"));
    let listed: BTreeSet<_> = source
        .unwrap()
        .text
        .lines()
        .filter(|line| line.starts_with("//! |"))
        .flat_map(named_in)
        .collect();
    let exported = metric::OF_LOCKS
        .iter()
        .chain(metric::OF_STORES)
        .chain(metric::OF_EDGES);
    assert_eq!(listed, exported.map(|metric| metric.name).collect());
}
