//! The keys that a gateway signs its tokens with.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use fenced_store::http::signed::{Audience, InvalidKey, KeyRing, Secret, SigningKey};

use crate::{cli::SigningArgs, console::Console, failure::Failure};

/// A ring of keys, and the file that it is read from again when somebody says so.
#[derive(Debug)]
pub(crate) struct Signing {
    ring: KeyRing,
    audience: Audience,
    file: Option<PathBuf>,
}

impl Signing {
    /// The keys that the arguments name; none if tokens are not to be signed.
    ///
    /// Without a file there is one key, which nobody else has and which ends with this process.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a file that cannot be read or holds something else.
    pub(crate) fn of(args: &SigningArgs) -> Result<Option<Self>, Failure> {
        if args.unsigned {
            return Ok(None);
        }
        let (file, audience) = (args.signing_keys.clone(), args.audience.clone());
        let keys = match &file {
            Some(path) => read(path, &audience)?,
            None => vec![ephemeral_key(audience.clone())?],
        };
        let ring = ring_of(keys, file.as_deref())?;
        Ok(Some(Self {
            ring,
            audience,
            file,
        }))
    }

    /// The keys, as they are at any time.
    pub(crate) fn ring(&self) -> KeyRing {
        self.ring.clone()
    }

    /// Whether there is a file that could be read again.
    pub(crate) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again. If that fails, the keys stay as they are.
    pub(crate) fn reload(&self) {
        let Some(path) = &self.file else { return };
        let reloaded = read(path, &self.audience).and_then(|keys| {
            let replaced = self.ring.replace(keys);
            replaced.map_err(|error| not_a_ring(Some(path), &error))
        });
        Console::Stdout.line(match reloaded {
            Ok(()) => format!(
                "signing keys read again, {} signs",
                self.ring.signing_key().id()
            ),
            Err(error) => format!("signing keys stay as they were: {error}"),
        });
    }
}

/// A ring of one key that nobody else has.
///
/// # Errors
/// If the audience is no name for one.
pub(crate) fn ephemeral(audience: &str) -> Result<KeyRing, Failure> {
    let audience = Audience::new(audience).map_err(|error| Failure::Usage(error.to_string()))?;
    ring_of(vec![ephemeral_key(audience)?], None)
}

/// Prints a line for a file of keys.
///
/// # Errors
/// If keys cannot be called so.
pub(crate) fn print_new_key(id: &str) -> Result<(), Failure> {
    let secret = Secret::random();
    let audience = Audience::new("any").and_then(|any| SigningKey::derived(id, &secret, any));
    audience.map_err(|error| Failure::Usage(format!("{id:?}: {error}")))?;
    Console::Stdout.line(format!("{id} {}", *secret.expose()));
    Ok(())
}

/// Lines of a key id and a secret; empty ones and those that begin with `#` are skipped.
fn read(path: &Path, audience: &Audience) -> Result<Vec<SigningKey>, Failure> {
    let shown = path.display();
    let unreadable = |error: io::Error| Failure::Usage(format!("--signing-keys {shown}: {error}"));
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!("others can read {shown}, which holds secrets: chmod 600 is better");
    }
    let mut keys = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = key(line, audience).map_err(|error| {
            Failure::Usage(format!(
                "--signing-keys {shown}, line {number}: {error}; `demo-service signing-key` \
                 prints a line"
            ))
        });
        keys.push(key?);
    }
    Ok(keys)
}

fn key(line: &str, audience: &Audience) -> Result<SigningKey, InvalidKey> {
    let (id, secret) = line.split_once(' ').ok_or(InvalidKey::Secret)?;
    SigningKey::derived(id, &secret.trim().parse()?, audience.clone())
}

fn ephemeral_key(audience: Audience) -> Result<SigningKey, Failure> {
    let key = SigningKey::derived("ephemeral", &Secret::random(), audience);
    key.map_err(|error| Failure::Usage(error.to_string()))
}

fn ring_of(keys: Vec<SigningKey>, path: Option<&Path>) -> Result<KeyRing, Failure> {
    KeyRing::new(keys).map_err(|error| not_a_ring(path, &error))
}

fn not_a_ring(path: Option<&Path>, error: &InvalidKey) -> Failure {
    let path = path.unwrap_or(Path::new(""));
    Failure::Usage(format!("--signing-keys {}: {error}", path.display()))
}
