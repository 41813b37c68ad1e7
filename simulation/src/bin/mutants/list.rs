//! The lists of mutants, and their places in the present sources.

use std::{collections::BTreeSet, fs, ops::Range, path::Path};

use serde::Deserialize;

use crate::Failure;

/// One fault that is put into the shipped code.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The promise that the fault breaks, as `docs/guarantees.md` names it.
    pub(crate) breaks: String,
    /// Promises that the fault breaks as well. The seed decides which promise a schedule breaks
    /// first.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    pub(crate) file: String,
    /// A text that the file has once, and that has `find` once. Without it the file has `find`
    /// once.
    within: Option<String>,
    /// An expression, or statements that end with a semicolon or a brace.
    pub(crate) find: String,
    pub(crate) instead: String,
    pub(crate) by: Catcher,
    /// For tests: the package, the target or `lib`, and the beginnings of the names of tests.
    pub(crate) test: Option<String>,
    /// The fault leads to a loop without an await, so that only a time limit catches it.
    #[serde(default)]
    pub(crate) hangs: bool,
}

/// The checks that have to catch a mutant.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Catcher {
    Simulation,
    /// Tests that make one call after another: tests of the contract, and of the package itself.
    Conformance,
    /// Tests of calls in each order.
    Interleavings,
}

/// The place in Rust code that all scripts of a folder pass when the program runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seam {
    pub(crate) folder: String,
    pub(crate) file: String,
    pub(crate) find: String,
    pub(crate) instead: String,
}

/// All lists.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(default, rename = "mutant")]
    pub(crate) mutants: Vec<Mutant>,
    #[serde(default, rename = "seam")]
    pub(crate) seams: Vec<Seam>,
}

impl List {
    /// Reads the lists of a workspace, and looks for all texts in its sources.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let mut paths: Vec<_> = fs::read_dir(root.join("simulation/mutants"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_, Failure>>()?;
        paths.sort();
        let mut all = Self::default();
        for path in paths {
            let text = fs::read_to_string(&path)?;
            let list: Self =
                toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            all.mutants.extend(list.mutants);
            all.seams.extend(list.seams);
        }
        all.check(root)?;
        Ok(all)
    }

    fn check(&self, root: &Path) -> Result<(), Failure> {
        let mut names = BTreeSet::new();
        for mutant in &self.mutants {
            let name = &mutant.name;
            let text = fs::read_to_string(root.join(&mutant.file))
                .map_err(|error| format!("{name}: {}: {error}", mutant.file))?;
            mutant.place(&text)?;
            let fault = match (mutant.by, &mutant.test) {
                _ if !names.insert(name) => "the name is taken",
                (Catcher::Simulation, Some(_)) => "a simulation has no test",
                (Catcher::Conformance | Catcher::Interleavings, None) => "it names no test",
                (_, Some(test)) if test.split(' ').count() < 3 => "its test needs three words",
                _ if mutant.is_script() && self.seam_of(mutant).is_none() => "it has no seam",
                _ => continue,
            };
            return Err(format!("{name}: {fault}").into());
        }
        for seam in &self.seams {
            let text = fs::read_to_string(root.join(&seam.file))?;
            only(&text, &seam.find).map_err(|fault| format!("{}: {fault}", seam.file))?;
        }
        Ok(())
    }

    /// The place that the text of a mutant's script passes.
    pub(crate) fn seam_of(&self, mutant: &Mutant) -> Option<&Seam> {
        let is_its = |seam: &&Seam| Path::new(&mutant.file).starts_with(&seam.folder);
        self.seams.iter().find(is_its)
    }
}

impl Mutant {
    /// Whether a schedule that breaks this promise has caught it. Tests have names of their own.
    pub(crate) fn is_caught_by(&self, promise: &str) -> bool {
        let is_its = |it: &String| it == promise;
        self.by != Catcher::Simulation || is_its(&self.breaks) || self.also.iter().any(is_its)
    }

    /// Whether the fault is in a script that Rust code reads, and not in Rust code itself.
    pub(crate) fn is_script(&self) -> bool {
        Path::new(&self.file)
            .extension()
            .is_none_or(|it| it != "rs")
    }

    /// The place of the text that the fault replaces.
    pub(crate) fn place(&self, text: &str) -> Result<Range<usize>, Failure> {
        let find = || {
            let Some(within) = &self.within else {
                return only(text, &self.find);
            };
            let around = only(text, within)?.start;
            let inner = only(within, &self.find)?;
            Ok(around + inner.start..around + inner.end)
        };
        let place: Result<_, Failure> = find();
        place.map_err(|fault| format!("{} in {}: {fault}", self.name, self.file).into())
    }
}

/// The only place of a text in another text.
pub(crate) fn only(text: &str, find: &str) -> Result<Range<usize>, Failure> {
    let mut places = text.match_indices(find);
    match (places.next(), places.next()) {
        (Some((at, _)), None) if !find.is_empty() => Ok(at..at + find.len()),
        (None, _) => Err(format!("{find:?} is not there").into()),
        _ => Err(format!("{find:?} is there more than once").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a mutant whose code has changed since, so that it changes nothing.
    #[test]
    fn each_mutant_finds_its_text_in_the_sources_of_today() {
        let list = List::read(crate::root()).unwrap();
        let in_rust = list.mutants.iter().filter(|mutant| !mutant.is_script());
        let (rust, all) = (in_rust.count(), list.mutants.len());
        assert!(rust >= 20 && all - rust >= 4, "{rust} of {all} are of Rust");
    }

    /// Catches: a list with a promise that the documents do not have.
    #[test]
    fn each_mutant_breaks_a_promise_that_is_documented() {
        let mut documents = String::new();
        for folder in ["docs", "docs/lock-services", "docs/databases"] {
            for entry in fs::read_dir(crate::root().join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|it| it == "md") {
                    documents += &fs::read_to_string(path).unwrap();
                }
            }
        }
        for mutant in List::read(crate::root()).unwrap().mutants {
            for promise in mutant.also.iter().chain([&mutant.breaks]) {
                let row = format!("| `{promise}` |");
                assert!(documents.contains(&row), "{}: no row {row}", mutant.name);
            }
        }
    }

    /// Catches: a mutant that a rule finds by chance.
    #[test]
    fn only_its_promise_catches_a_mutant_in_a_simulation() {
        let mutants = List::read(crate::root()).unwrap().mutants;
        let of = |name| mutants.iter().find(|mutant| mutant.name == name).unwrap();
        let claims = of("claim-forgets-the-holder");
        assert!(claims.is_caught_by("attack-one-token") && claims.is_caught_by("G3"));
        assert!(!claims.is_caught_by("G8"));
        let by_a_test = of("implausible-token-claimed");
        assert!(by_a_test.is_caught_by("implausible_tokens_are_not_claimed"));
    }

    /// Catches: a text that is replaced in the wrong place, or in one of two.
    #[test]
    fn a_text_has_to_be_there_once() {
        let mutant = |within: Option<&str>, find: &str| Mutant {
            name: "m".into(),
            breaks: "G1".into(),
            also: Vec::new(),
            file: "a.rs".into(),
            within: within.map(str::to_owned),
            find: find.into(),
            instead: String::new(),
            by: Catcher::Simulation,
            test: None,
            hangs: false,
        };
        let text = "a < b; c < d; c < d";
        assert_eq!(mutant(None, "a < b").place(text).unwrap(), 0..5);
        assert_eq!(mutant(Some("a < b"), "b").place(text).unwrap(), 4..5);
        for (within, find) in [
            (None, "c < d"),
            (None, "e"),
            (None, ""),
            (Some("c < d"), "c"),
            (Some("a < b; c"), " "),
        ] {
            mutant(within, find).place(text).unwrap_err();
        }
    }
}
