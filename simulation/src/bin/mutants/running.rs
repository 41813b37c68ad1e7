//! One run of a program, with or without a mutant, in a process of its own.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use tokio::{process::Command, time::timeout};

use crate::{Failure, switch::VARIABLE};

/// A program, its arguments, and where it runs.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) folder: PathBuf,
    /// The first seed, if it is a simulation.
    pub(crate) seed: Option<u64>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) verdict: Verdict,
    /// Whether the code of the mutant was run.
    pub(crate) is_reached: bool,
    pub(crate) took: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A promise was broken, or a test has failed.
    Caught {
        by: String,
        /// How many schedules it took, if it was a simulation.
        schedules: Option<u64>,
    },
    /// Nothing was found.
    Survived,
    /// The time was over.
    TimeUp,
    /// No test was run, or the program ended in another way.
    Failed(String),
}

impl Check {
    /// Runs the program, and writes its output to a file.
    pub(crate) async fn run(
        &self,
        mutant: Option<&str>,
        log: &Path,
        limit: Duration,
    ) -> Result<Run, Failure> {
        let output = File::create(log)?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_remove(VARIABLE)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        if let Some(mutant) = mutant {
            command.env(VARIABLE, mutant);
        }
        let began = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let ended = match timeout(limit, child.wait()).await {
            Ok(status) => Some(status?),
            Err(_) => {
                child.kill().await?;
                None
            }
        };
        let took = began.elapsed();
        let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
        Ok(Run {
            verdict: ended.map_or(Verdict::TimeUp, |status| self.verdict(status, &output)),
            is_reached: output.contains("mutant reached: "),
            took,
        })
    }

    fn verdict(&self, status: ExitStatus, output: &str) -> Verdict {
        let found = match self.seed {
            Some(seed) => output.lines().find_map(|line| broken(line, seed)),
            None => output.lines().find_map(failed_test),
        };
        match (status.code(), found) {
            (Some(0), None) if self.seed.is_none() && runs_no_test(output) => {
                Verdict::Failed("no test was run".to_owned())
            }
            (Some(0), None) => Verdict::Survived,
            (Some(1 | 101), Some(caught)) => caught,
            _ => Verdict::Failed(status.to_string()),
        }
    }
}

/// A line `broken: PROMISE seed SEED ..` of the simulator.
fn broken(line: &str, first_seed: u64) -> Option<Verdict> {
    let rest = line.trim().strip_prefix("broken: ")?;
    let (promise, rest) = rest.split_once(" seed ").unwrap_or((rest, ""));
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
    let seed = digits.and_then(|digits| digits.parse::<u64>().ok());
    Some(Verdict::Caught {
        by: promise.to_owned(),
        schedules: seed.map(|seed| seed.wrapping_sub(first_seed).saturating_add(1)),
    })
}

/// A line `test NAME ... FAILED` of the test runner. Other output may come between.
fn failed_test(line: &str) -> Option<Verdict> {
    let rest = line.strip_prefix("test ")?;
    let name = rest.strip_suffix("FAILED")?;
    let path = name.split([' ', ',']).next().unwrap_or(name);
    let name = path.rsplit("::").next().unwrap_or(path);
    Some(Verdict::Caught {
        by: name.to_owned(),
        schedules: None,
    })
}

fn runs_no_test(output: &str) -> bool {
    let mut lines = output.lines();
    !lines.any(|line| line.starts_with("test result: ok.") && !line.contains(" 0 passed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::main(flavor = "current_thread")]
    async fn run(text: &str, seed: Option<u64>, mutant: Option<&str>) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(1_000);
        let check = Check {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), text.to_owned()],
            folder: "/".into(),
            seed,
        };
        let log = folder.path().join("log");
        check.run(mutant, &log, limit).await.unwrap()
    }

    fn caught(by: &str, schedules: Option<u64>) -> Verdict {
        let by = by.to_owned();
        Verdict::Caught { by, schedules }
    }

    /// Catches: a mutant that is taken for caught because the program did not run.
    #[test]
    fn only_a_broken_promise_catches_a_mutant() {
        let of = |text| run(text, Some(5), None).verdict;
        assert_eq!(
            of("echo broken: G5 seed 7 of 9; exit 1"),
            caught("G5", Some(3))
        );
        assert_eq!(of("echo broken: G5; exit 1"), caught("G5", None));
        assert_eq!(of("echo all is well"), Verdict::Survived);
        assert!(matches!(of("echo broken: G5 seed 7"), Verdict::Failed(_)));
        assert!(matches!(of("exit 1"), Verdict::Failed(_)));
        assert!(matches!(of("kill -9 $$"), Verdict::Failed(_)));
        assert_eq!(of("while :; do :; done"), Verdict::TimeUp);
    }

    /// Catches: a filter that fits no test, so that every mutant or none seems to survive.
    #[test]
    fn only_a_failed_test_catches_a_mutant() {
        let of = |text| run(text, None, None).verdict;
        let line = "echo 'test a::b - should panic ... FAILED'; exit 101";
        assert_eq!(of(line), caught("b", None));
        assert_eq!(of("echo 'test result: ok. 3 passed; 0'"), Verdict::Survived);
        assert!(matches!(
            of("echo 'test result: ok. 0 passed;'"),
            Verdict::Failed(_)
        ));
        assert!(matches!(of("exit 101"), Verdict::Failed(_)));
    }

    /// Catches: a process that is not told of its mutant, or a control that is.
    #[test]
    fn a_process_knows_its_mutant_alone() {
        let text = format!(r#"[ -z "${VARIABLE}" ] || echo "mutant reached: ${VARIABLE}""#);
        assert!(run(&text, Some(1), Some("late")).is_reached);
        assert!(!run(&text, Some(1), None).is_reached);
    }
}
