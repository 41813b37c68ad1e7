//! `draw`: the picture of a saved record.

use std::{fs, path::Path};

use crate::{console::Console, events::Recording, failure::Failure, report};

/// Prints the picture as SVG. It is the same as on the page and in the report.
///
/// # Errors
/// [`Failure::Usage`] for a file that cannot be read or contains something else.
pub(crate) fn run(path: &Path) -> Result<(), Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let recording: Recording = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("no recording as the page saves it: {error}")))?;
    let scenes = report::chosen(&recording);
    if scenes.is_empty() {
        return Err(wrong("nothing happens in it".to_owned()));
    }
    Console::Stdout.line(report::picture(&scenes));
    Ok(())
}
