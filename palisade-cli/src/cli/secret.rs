//! Values that may be secrets: all users of a machine can see the arguments of its processes, and
//! many can see an environment. So every option of every command can have such a value in a file.

use std::{convert::Infallible, ffi::OsStr, fs, marker::PhantomData, path::Path, str::FromStr};

use clap::{
    Arg, Command, Error,
    builder::{TypedValueParser, ValueParserFactory},
    error::ErrorKind,
};

use crate::{address::Address, console::Console, private_file};

/// The section of the help about secrets.
macro_rules! secrets {
    () => {
        "\
Secrets:
  In place of a URL or a token, write @FILE for the content of the file, also in the environment. An
  empty variable counts as unset."
    };
}
pub(super) use secrets;

/// Reads a `T`, or the name of its file behind an `@`. Errors do not repeat the argument, because
/// it may be a secret that begins with `@`.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the parser of `Address`")]
pub struct SecretParser<T>(PhantomData<fn() -> T>);

impl<T> SecretParser<T> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> TypedValueParser for SecretParser<T>
where
    T: FromStr<Err = Infallible> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, Error> {
        let text = given(value).map_err(|why| {
            let option = argument.and_then(Arg::get_long).unwrap_or_default();
            let told = format!("--{option}: {why}\n");
            Error::raw(ErrorKind::ValueValidation, told).with_cmd(command)
        })?;
        match text.parse() {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }
}

fn given(value: &OsStr) -> Result<String, String> {
    let text = value.to_str().ok_or("the value is not UTF-8")?;
    let Some(path) = text.strip_prefix('@') else {
        return Ok(text.to_owned());
    };
    let read = fs::read_to_string(path);
    let text = read.map_err(|error| format!("the file that it names behind the @: {error}"))?;
    // This goes to stderr, because there is no log yet.
    if let Some(warning) = private_file::warning(Path::new(path)) {
        Console::Stderr.line(format!("palisade: {warning}"));
    }
    match text.trim() {
        "" => Err("the file that it names behind the @ is empty".to_owned()),
        text if text.lines().count() > 1 => {
            Err("the file that it names behind the @ has more than one line".to_owned())
        }
        text => Ok(text.to_owned()),
    }
}

impl<T> Clone for SecretParser<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl ValueParserFactory for Address {
    type Parser = SecretParser<Self>;

    fn value_parser() -> SecretParser<Self> {
        SecretParser::new()
    }
}
