use std::{path::Path, process::Command};

/// The server that starts browsers. They stay in its process group.
pub(crate) struct ChromeDriver;

impl ChromeDriver {
    pub(crate) fn command(port: u16, dir: &Path) -> Command {
        let mut command = Command::new("chromedriver");
        command
            .arg(format!("--port={port}"))
            // Puts the profiles of browsers into a folder that is removed with everything else.
            .env("TMPDIR", dir)
            .env("HOME", dir);
        command
    }

    pub(crate) fn url(port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }
}
