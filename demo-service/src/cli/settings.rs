//! Settings of `serve` from four places: flags, then the environment, then the file, then defaults.
//!
//! There is one definition of each, the flag. A value in the file becomes the default of its flag,
//! so that the parser of the command line settles the precedence and checks every value alike.

use std::path::PathBuf;

use clap::{
    ArgMatches, Command as Definition, CommandFactory, FromArgMatches, parser::ValueSource,
};

use super::{Cli, Command, config_file::ConfigFile};
use crate::{address::Address, failure::Failure};

const SERVE: &str = "serve";

/// The effective settings from the four places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effective {
    /// The settings as lines of a file of settings, each with the place that it comes from.
    pub(crate) lines: String,
    /// The file, if there are secrets in it.
    pub(crate) secret_file: Option<PathBuf>,
}

/// Flags that are not settings.
const NO_SETTINGS: [&str; 4] = ["config", "print-config", "help", "version"];

/// Never shown.
const SECRET: [&str; 1] = ["admin_token"];

/// Shown without passwords.
const ADDRESSES: [&str; 2] = ["lock", "store"];

/// Reads the command line, the environment and, for `serve`, the file that they name.
///
/// A mistake on the command line ends the program, as does a request for help.
///
/// # Errors
/// [`Failure::Usage`] for a mistake in the file.
pub(super) fn read() -> Result<Command, Failure> {
    let definition = Cli::command();
    // Settings that may be in the file are not required yet.
    let found = in_serve(definition.clone(), &|serve| {
        serve.mut_args(|arg| arg.required(false))
    })
    .get_matches();
    let serve = found.subcommand_matches(SERVE);
    let Some(path) = serve.and_then(|serve| serve.get_one::<PathBuf>("config")) else {
        return Ok(chosen(&definition.clone().get_matches(), None, &definition));
    };
    let file = ConfigFile::read(path, &keys(&definition))?;
    let with_file = in_serve(definition.clone(), &|serve| {
        file.settings().iter().fold(serve, |serve, setting| {
            let Some(id) = id(&serve, &setting.key) else {
                return serve;
            };
            serve.mut_arg(id, |arg| {
                arg.required(false).default_value(setting.value.clone())
            })
        })
    });
    // Mistakes of the command line or the environment would have been found before.
    let matches = with_file
        .clone()
        .try_get_matches_from(std::env::args_os())
        .map_err(|error| match error.kind() {
            clap::error::ErrorKind::MissingRequiredArgument => error.exit(),
            _ => Failure::from(file.wrong_value(&error)),
        })?;
    Ok(chosen(&matches, Some(&file), &with_file))
}

fn chosen(matches: &ArgMatches, file: Option<&ConfigFile>, definition: &Definition) -> Command {
    let cli = Cli::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    let mut command = cli.chosen();
    if let (Command::Serve(args), Some(serve)) = (&mut command, matches.subcommand_matches(SERVE)) {
        let secret = file.filter(|file| file.holds_secrets());
        args.effective = Effective {
            lines: lines(definition, serve, file),
            secret_file: secret.map(|file| file.path().to_owned()),
        };
    }
    command
}

/// The settings as lines of a file of settings, each with the place that it comes from.
fn lines(definition: &Definition, matches: &ArgMatches, file: Option<&ConfigFile>) -> String {
    let mut lines = Vec::new();
    if let Some(file) = file {
        lines.push(format!("# with the file {}", file.path().display()));
    }
    let Some(serve) = definition.find_subcommand(SERVE) else {
        return String::new();
    };
    for arg in serve.get_arguments() {
        let Some(key) = key(arg) else { continue };
        let id = arg.get_id().as_str();
        let raw = matches
            .get_raw(id)
            .and_then(|mut values| values.next_back());
        let Some(raw) = raw.map(|raw| raw.to_string_lossy()) else {
            lines.push(format!("# {key} is not set"));
            continue;
        };
        let from = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "command line".to_owned(),
            Some(ValueSource::EnvVariable) => match arg.get_env() {
                Some(name) => format!("environment, {}", name.to_string_lossy()),
                None => "environment".to_owned(),
            },
            _ if file.is_some_and(|file| file.get(&key).is_some()) => "file".to_owned(),
            _ => "default".to_owned(),
        };
        lines.push(if SECRET.contains(&key.as_str()) {
            format!("# {key} is set, and not shown # {from}")
        } else {
            format!("{key} = {} # {from}", shown(&key, &raw))
        });
    }
    lines.join("\n")
}

/// The value, as TOML.
fn shown(key: &str, raw: &str) -> String {
    if ADDRESSES.contains(&key) {
        let address = raw.parse::<Address>().map(|address| address.to_string());
        return quoted(&address.unwrap_or_default());
    }
    if raw.parse::<i64>().is_ok() || raw.parse::<bool>().is_ok() {
        return raw.to_owned();
    }
    quoted(raw)
}

/// Strings of JSON are strings of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The names of all settings.
fn keys(definition: &Definition) -> Vec<String> {
    let serve = definition.find_subcommand(SERVE);
    let args = serve.into_iter().flat_map(Definition::get_arguments);
    args.filter_map(key).collect()
}

/// The name of a flag's setting in a file.
fn key(arg: &clap::Arg) -> Option<String> {
    let long = arg.get_long()?;
    (!NO_SETTINGS.contains(&long)).then(|| long.replace('-', "_"))
}

fn id(serve: &Definition, wanted: &str) -> Option<clap::Id> {
    let mut args = serve.get_arguments();
    let arg = args.find(|arg| key(arg).as_deref() == Some(wanted))?;
    Some(arg.get_id().clone())
}

fn in_serve(definition: Definition, change: &dyn Fn(Definition) -> Definition) -> Definition {
    definition.mut_subcommand(SERVE, change)
}
