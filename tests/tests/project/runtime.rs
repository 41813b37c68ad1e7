//! A run can be repeated, because the trait [`Runtime`](lock_core::backend::Runtime) hands in time
//! and random numbers.

use e2e::project::{SourceFile, tracked_files};

/// Crates that a simulation runs.
const SIMULATED: [&str; 4] = ["lock-core", "lock-services", "fenced-store", "fenced-jobs"];

/// The implementation of the trait itself, a holder that a caller draws, a trigger's name, and the
/// extra connection that shows why a pool has no free one.
const EXCEPTED: [&str; 4] = [
    "lock-core/src/runtime.rs",
    "lock-core/src/holder.rs",
    "fenced-store/src/schema/triggers.rs",
    "fenced-store/src/transaction/leaked.rs",
];

/// The sources of programs, without examples.
fn sources() -> impl Iterator<Item = SourceFile> {
    let is_source = |file: &SourceFile| {
        let mut folders = file.path.iter();
        !file.path.starts_with("examples") && folders.any(|folder| folder == "src")
    };
    tracked_files(Some("rs")).into_iter().filter(is_source)
}

/// Lines with code, and their numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.starts_with("//"))
}

/// Catches: a branch that is taken by chance, so that no seed repeats a run.
#[test]
fn each_select_asks_its_branches_in_order() {
    let select = ["sel", "ect! {"].concat();
    let mut found = 0;
    for SourceFile { path, text } in sources() {
        let mut lines = code(&text);
        while let Some((number, line)) = lines.next() {
            if line.ends_with(&select) {
                found += 1;
                let next = lines.next().map(|(_, line)| line);
                let place = format!("{}:{number}", path.display());
                assert_eq!(next, Some("biased;"), "{place} is not biased");
            }
        }
    }
    assert!(found > 20, "only {found} were found");
}

/// Catches: a pause that a manual clock does not end, and a name that no seed repeats.
#[test]
fn time_and_chance_come_from_the_runtime() {
    let past_it = ["tokio::time", "rand::", "Instant::now", "SystemTime::now"];
    let simulated = |file: &SourceFile| {
        let is_excepted = EXCEPTED.iter().any(|path| file.path.ends_with(path));
        SIMULATED.iter().any(|folder| file.path.starts_with(folder)) && !is_excepted
    };
    for SourceFile { path, text } in sources().filter(simulated) {
        for (number, line) in code(&text) {
            let word = past_it.iter().find(|word| line.contains(**word));
            assert_eq!(
                word,
                None,
                "{}:{number} goes past the runtime",
                path.display()
            );
        }
    }
}
