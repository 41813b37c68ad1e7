//! `draw`: the picture of a saved record, or a page that plays it.

use std::{fs, path::Path};

use palisade_cli::{Console, Failure};

use crate::{events::Recording, report};

/// Prints the same picture as the page and the report have, as SVG; or a page that plays the
/// record, as HTML.
///
/// # Errors
/// [`Failure::Usage`] for a file that cannot be read or contains something else.
pub(crate) fn run(path: &Path, plays: bool) -> Result<(), Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let recording: Recording = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("no recording as the page saves it: {error}")))?;
    let drawn = if plays {
        report::player(&recording)
    } else {
        let scenes = report::chosen(&recording);
        (!scenes.is_empty()).then(|| report::picture(&scenes))
    };
    Console::Stdout.line(drawn.ok_or_else(|| wrong("nothing happens in it".to_owned()))?);
    Ok(())
}
