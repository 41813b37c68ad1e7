use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use toml::{Spanned, Value};

use crate::failure::Failure;

/// A file of settings for `serve`, in TOML. Its keys are the long names of the flags with `_`.
#[derive(Debug)]
pub(super) struct ConfigFile {
    path: PathBuf,
    settings: Vec<Setting>,
}

/// A line of the file.
pub(super) struct Setting {
    pub(super) key: String,
    /// As it would be on the command line.
    pub(super) value: String,
    line: usize,
}

/// A mistake in a file of settings. No message repeats a value: some are secrets.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error("--config {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("--config {}, line {line}: {message}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error(
        "--config {}, line {line}: there is no setting \"{key}\"; there are: {known}",
        path.display()
    )]
    UnknownKey {
        path: PathBuf,
        line: usize,
        key: String,
        known: String,
    },
    #[error(
        "--config {}, line {line}: \"{key}\" is a text, a whole number, true or false",
        path.display()
    )]
    WrongType {
        path: PathBuf,
        line: usize,
        key: String,
    },
    #[error("--config {}{}: {message}", path.display(), at_line(*line))]
    WrongValue {
        path: PathBuf,
        line: Option<usize>,
        message: String,
    },
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl ConfigFile {
    /// Reads a file that may contain these settings and no others.
    ///
    /// # Errors
    /// [`ConfigError`], except `WrongValue`.
    pub(super) fn read(path: &Path, known: &[String]) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let text = fs::read_to_string(path).map_err(unreadable)?;
        // Some editors begin a file with a byte order mark, which has no meaning here.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let line_of = |at: usize| {
            text.get(..at)
                .map_or(1, |before| before.lines().count().max(1))
        };
        let table: BTreeMap<Spanned<String>, Value> =
            toml::from_str(text).map_err(|error| ConfigError::Syntax {
                path: path.to_owned(),
                line: error.span().map_or(1, |span| line_of(span.start + 1)),
                message: error.message().to_owned(),
            })?;
        let mut settings = Vec::new();
        for (key, value) in table {
            let line = line_of(key.span().start + 1);
            let key = key.into_inner();
            let path = path.to_owned();
            if !known.contains(&key) {
                let known = known.join(", ");
                return Err(ConfigError::UnknownKey {
                    path,
                    line,
                    key,
                    known,
                });
            }
            let value = match value {
                Value::String(text) => text,
                Value::Integer(number) => number.to_string(),
                Value::Boolean(truth) => truth.to_string(),
                _ => return Err(ConfigError::WrongType { path, line, key }),
            };
            settings.push(Setting { key, value, line });
        }
        let path = path.to_owned();
        Ok(Self { path, settings })
    }

    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The setting with this name, if the file has one.
    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// The error for a value that the parser of the command line rejects.
    pub(super) fn wrong_value(&self, error: &clap::Error) -> ConfigError {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        let message = message.trim_start_matches("error: ").to_owned();
        let named = self.settings.iter().find(|setting| {
            let flag = format!("'--{}", setting.key.replace('_', "-"));
            let rest = message.split_once(&flag).map(|(_, rest)| rest);
            // Otherwise it is the beginning of a longer name: `--log` is not `--log-format`.
            let ends =
                |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-');
            rest.is_some_and(ends)
        });
        ConfigError::WrongValue {
            path: self.path.clone(),
            line: named.map(|setting| setting.line),
            message,
        }
    }

    /// Whether the file contains secrets.
    pub(super) fn holds_secrets(&self) -> bool {
        self.settings.iter().any(|setting| {
            let in_url = |part| setting.value.contains(part);
            setting.key == "admin_token" || in_url("@") || in_url("password=")
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Setting").field(&self.key).finish()
    }
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line}"))
        .unwrap_or_default()
}
