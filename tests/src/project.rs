//! The project as its tests see it: its files and its packages.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// The root of the repository.
pub fn root() -> &'static Path {
    // This package lies one level below it.
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A file of the project, by its path below the root.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path below the root.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// All text files that git tracks, either of one extension or all.
///
/// # Panics
/// If this is not a git checkout.
pub fn tracked_files(extension: Option<&str>) -> Vec<SourceFile> {
    let listed = run(Command::new("git").arg("ls-files").current_dir(root()));
    listed
        .lines()
        .map(PathBuf::from)
        .filter(|path| extension.is_none_or(|wanted| path.extension().is_some_and(|e| e == wanted)))
        .filter_map(|path| {
            // Pictures are not text; links and files that are deleted but not yet committed cannot
            // be read.
            let text = fs::read_to_string(root().join(&path)).ok()?;
            Some(SourceFile { path, text })
        })
        .collect()
}

/// The text of all files in a folder that have this extension, by name, without subfolders.
///
/// # Panics
/// If there is no such folder, or a file in it cannot be read.
pub fn files_in(folder: &str, extension: &str) -> Vec<SourceFile> {
    read_folder(&root().join(folder), extension)
        .unwrap_or_else(|error| panic!("cannot read {folder}: {error}"))
}

fn read_folder(folder: &Path, extension: &str) -> io::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path)?;
            files.push(SourceFile { path, text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The output of cargo.
///
/// # Panics
/// If it fails.
pub fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    run(Command::new(cargo).args(arguments).current_dir(root()))
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
