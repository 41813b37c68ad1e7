//! Builds the copy: the simulator in release, tests with the profile in which they usually run.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{Failure, list::Mutant};

/// A program that was built.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    package: String,
    target: String,
    pub(crate) path: PathBuf,
    /// The folder of its package.
    pub(crate) folder: PathBuf,
}

/// A test program and the tests that a mutant is checked by: `PACKAGE TARGET FILTER..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tests<'a> {
    package: &'a str,
    target: &'a str,
    pub(crate) filters: &'a str,
}

impl<'a> Tests<'a> {
    pub(crate) fn of(mutant: &'a Mutant) -> Option<Result<Self, Failure>> {
        let text = mutant.test.as_deref()?;
        let parts = text.split_once(' ');
        let parts = parts.and_then(|(package, rest)| Some((package, rest.split_once(' ')?)));
        let tests = parts.map(|(package, (target, filters))| Self {
            package,
            target,
            filters,
        });
        Some(tests.ok_or_else(|| format!("{text:?} is no `PACKAGE TARGET FILTER`").into()))
    }

    pub(crate) fn program(&self, built: &[Program]) -> Result<Program, Failure> {
        let is_its = |program: &&Program| {
            let target = match self.target {
                "lib" => self.package.replace('-', "_"),
                target => target.to_owned(),
            };
            program.package == self.package && program.target == target
        };
        let found = built.iter().find(is_its).cloned();
        found.ok_or_else(|| format!("{self:?} was not built").into())
    }
}

/// The simulator of the copy.
pub(crate) fn simulator(copy: &Path) -> Result<Program, Failure> {
    let arguments = "build --release --package simulation --bin simulation";
    let arguments: Vec<_> = arguments.split(' ').collect();
    let built = cargo(copy, &arguments)?.pop();
    built.ok_or_else(|| "cargo names no program".into())
}

/// The test programs of the copy, and the programs that these start.
pub(crate) fn tests(copy: &Path, tests: &BTreeSet<Tests<'_>>) -> Result<Vec<Program>, Failure> {
    if tests.is_empty() {
        return Ok(Vec::new());
    }
    let packages: BTreeSet<_> = tests.iter().map(|it| it.package).chain(["e2e"]).collect();
    let packages = packages.into_iter().flat_map(|name| ["--package", name]);
    let common: Vec<_> = ["--all-features"].into_iter().chain(packages).collect();
    let targets: BTreeSet<_> = tests.iter().map(|it| it.target).collect();
    let targets = targets.into_iter().flat_map(|target| match target {
        "lib" => vec!["--lib"],
        target => vec!["--test", target],
    });
    cargo(copy, &[&["build", "--bins"], &common[..]].concat())?;
    let targets: Vec<_> = targets.collect();
    cargo(
        copy,
        &[&["test", "--no-run"], &common[..], &targets].concat(),
    )
}

fn cargo(copy: &Path, arguments: &[&str]) -> Result<Vec<Program>, Failure> {
    eprintln!("cargo {}", arguments.join(" "));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .args([
            "--locked",
            "--quiet",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.with_extension("built"))
        // The switches are no example of style.
        .env("RUSTFLAGS", "--cap-lints=allow")
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the copy does not build".into());
    }
    let messages = String::from_utf8(output.stdout)?;
    messages
        .lines()
        .filter_map(|line| program(line).transpose())
        .collect()
}

/// The program that a message of cargo is about, if it is about a program.
fn program(message: &str) -> Result<Option<Program>, Failure> {
    let message: Value = serde_json::from_str(message)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let parts = (
        text(&message["target"]["name"]),
        text(&message["executable"]),
        text(&message["manifest_path"]),
    );
    let (Some(target), Some(path), Some(manifest)) = parts else {
        return Ok(None);
    };
    let package: toml::Table = toml::from_str(&fs::read_to_string(&manifest)?)?;
    let package = package["package"]["name"].as_str().unwrap_or_default();
    Ok(Some(Program {
        package: package.to_owned(),
        target,
        path: path.into(),
        folder: Path::new(&manifest).with_file_name(""),
    }))
}
