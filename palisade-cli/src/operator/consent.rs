use std::io::{self, IsTerminal};

use crate::{cli::Consent, console::Console, failure::Failure};

/// Asks the person at the terminal to type a name before an action that cannot be undone. A script
/// uses `--yes`.
///
/// # Errors
/// [`Failure::Usage`] if something else is typed, or there is no terminal to ask at.
pub(super) async fn ask(consent: Consent, what: String, name: &str) -> Result<(), Failure> {
    if consent.yes {
        return Ok(());
    }
    let refused = |why: String| Err(Failure::Usage(format!("{why}: nothing was changed")));
    if !io::stdin().is_terminal() {
        return refused("no terminal to ask at, and no --yes".to_owned());
    }
    Console::Stderr.line(format!("{what}\nType {name} to go on:"));
    let typed = tokio::task::spawn_blocking(|| io::stdin().lines().next().transpose());
    let typed = typed.await.map_err(io::Error::other).and_then(|line| line);
    let typed = typed.map_err(Failure::machine("reading the answer"))?;
    match typed.unwrap_or_default().trim() {
        answer if answer == name => Ok(()),
        answer => refused(format!("\"{answer}\" is not {name}")),
    }
}
