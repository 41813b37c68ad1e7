//! The keys with which a gateway signs its tokens.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fenced_http::signed::{Audience, InvalidKey, KeyRing, Secret, SigningKey};
use tokio::sync::watch;

use crate::{cli::SigningArgs, console::Console, failure::Failure, private_file};

/// A ring of keys, and the file from which the keys can be read again.
#[derive(Debug)]
pub(crate) struct Signing {
    ring: KeyRing,
    /// The secret of the key that signs.
    secret: watch::Sender<Secret>,
    audience: Audience,
    file: Option<PathBuf>,
    /// Whether the user has named the file, and so may change it.
    is_named: bool,
}

/// A line of the file.
struct Key {
    id: String,
    kind: Kind,
    secret: Secret,
}

/// The kind of a key.
#[derive(Clone, Copy)]
enum Kind {
    /// The key checks and signs, so every service that checks could sign, too.
    Shared,
    /// A service that checks only has the public half.
    Pair,
}

impl Signing {
    /// The keys that the arguments name; `None` if tokens are not signed.
    ///
    /// If the arguments name none, the keys are in `own`, a file of this program. Without such a
    /// file there is one key, which only this process has and which is lost with it.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a file that cannot be read or contains something else.
    pub(crate) fn of(
        args: &SigningArgs,
        own: impl FnOnce() -> Result<Option<PathBuf>, Failure>,
    ) -> Result<Option<Self>, Failure> {
        match &args.signing_keys {
            Some(path) if args.unsigned => {
                let path = path.display();
                return Err(Failure::Usage(format!(
                    "--unsigned and --signing-keys {path} exclude each other"
                )));
            }
            _ if args.unsigned => return Ok(None),
            _ => {}
        }
        let is_named = args.signing_keys.is_some();
        let file = match &args.signing_keys {
            Some(named) => Some(named.clone()),
            None => own()?,
        };
        let audience = args.audience.clone();
        let keys = match &file {
            Some(path) => read(path)?,
            None => vec![Key::ephemeral()],
        };
        let wrong = |error| wrong(file.as_deref(), &error);
        let secret = secret(&keys).map_err(wrong)?;
        let ring = KeyRing::new(for_audience(keys, &audience).map_err(wrong)?).map_err(wrong)?;
        Ok(Some(Self {
            ring,
            secret: watch::Sender::new(secret),
            audience,
            file,
            is_named,
        }))
    }

    /// The present keys.
    pub(crate) fn ring(&self) -> KeyRing {
        self.ring.clone()
    }

    /// The present secret, which gateways with the same keys share.
    pub(crate) fn secret(&self) -> watch::Receiver<Secret> {
        self.secret.subscribe()
    }

    /// Whether the keys outlive this process.
    pub(crate) const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether there is a file that the user may have changed.
    pub(crate) const fn has_named_file(&self) -> bool {
        self.is_named
    }

    /// Reads the file again. If that fails, the keys stay as they are.
    pub(crate) fn reload(&self) {
        let Some(path) = &self.file else { return };
        let reloaded = read(path).and_then(|keys| {
            let replaced = self.replace(keys);
            replaced.map_err(|error| wrong(Some(path), &error))
        });
        Console::Stdout.line(match reloaded {
            Ok(()) => format!(
                "signing keys read again, {} signs",
                self.ring.signing_key().id()
            ),
            Err(error) => format!("signing keys stay as they were: {error}"),
        });
    }

    fn replace(&self, keys: Vec<Key>) -> Result<(), InvalidKey> {
        let secret = secret(&keys)?;
        self.ring.replace(for_audience(keys, &self.audience)?)?;
        self.secret.send_replace(secret);
        Ok(())
    }
}

impl Key {
    /// A key that no other process has.
    fn ephemeral() -> Self {
        Self {
            id: "ephemeral".to_owned(),
            kind: Kind::Shared,
            secret: Secret::random(),
        }
    }

    fn parse(line: &str) -> Result<Self, InvalidKey> {
        let (id, rest) = line.split_once(' ').ok_or(InvalidKey::Secret)?;
        let (kind, secret) = match rest.trim().strip_prefix(PAIR) {
            Some(secret) => (Kind::Pair, secret),
            None => (Kind::Shared, rest),
        };
        let (id, secret) = (id.to_owned(), secret.trim().parse()?);
        let key = Self { id, kind, secret };
        key.for_audience(Audience::new("any")?)?;
        Ok(key)
    }

    fn for_audience(&self, audience: Audience) -> Result<SigningKey, InvalidKey> {
        let (id, secret) = (self.id.as_str(), &self.secret);
        match self.kind {
            Kind::Shared => SigningKey::derived(id, secret, audience),
            Kind::Pair => SigningKey::ed25519(id, secret, audience),
        }
    }
}

/// A ring of one key that no other process has.
///
/// # Errors
/// If the audience is not valid for a ring.
pub fn ephemeral(audience: &str) -> Result<KeyRing, Failure> {
    let ring = Audience::new(audience).and_then(|audience| {
        let key = Key::ephemeral().for_audience(audience)?;
        KeyRing::new([key])
    });
    ring.map_err(|error| Failure::Usage(error.to_string()))
}

/// A line for a file of keys, with a new secret.
pub(crate) fn new_line(id: &str, is_pair: bool) -> String {
    let kind = if is_pair { PAIR } else { "" };
    format!("{id} {kind}{}", *Secret::random().expose())
}

/// Prints a line for a file of keys, and the public half of a pair in a comment.
///
/// # Errors
/// If the name is not valid for a key.
pub(crate) fn print_new_key(id: &str, is_pair: bool) -> Result<(), Failure> {
    let line = new_line(id, is_pair);
    let key = Key::parse(&line).and_then(|key| key.for_audience(Audience::new("any")?));
    let key = key.map_err(|error| Failure::Usage(format!("{id:?}: {error}")))?;
    Console::Stdout.line(line);
    if let Some(public) = key.public_key() {
        Console::Stdout.line(format!("# {id}, for those who check: {public}"));
    }
    Ok(())
}

/// The key of a file that signs.
///
/// # Errors
/// [`Failure::Usage`] for a file that cannot be read or contains something else.
#[cfg(target_os = "linux")]
pub(crate) fn signing_key(path: &Path, audience: &Audience) -> Result<SigningKey, Failure> {
    let keys = for_audience(read(path)?, audience);
    let first = keys.and_then(|keys| keys.into_iter().next().ok_or(InvalidKey::NoKey));
    first.map_err(|error| wrong(Some(path), &error))
}

/// The prefix of the secret of a pair.
const PAIR: &str = "ed25519 ";

/// Reads lines of a key id and a secret. Empty lines, and lines that begin with `#`, are skipped.
fn read(path: &Path) -> Result<Vec<Key>, Failure> {
    let shown = path.display();
    let unreadable = |error: io::Error| Failure::Usage(format!("--signing-keys {shown}: {error}"));
    let text = fs::read_to_string(path).map_err(unreadable)?;
    if let Some(warning) = private_file::warning(path) {
        tracing::warn!("{warning}");
    }
    let lines = (1..).zip(text.lines().map(str::trim));
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    keys.map(|(number, line)| {
        Key::parse(line).map_err(|error| {
            Failure::Usage(format!(
                "--signing-keys {shown}, line {number}: {error}; `palisade signing-key` \
                 prints a line"
            ))
        })
    })
    .collect()
}

/// The secret of the key that signs.
fn secret(keys: &[Key]) -> Result<Secret, InvalidKey> {
    let first = keys.first().ok_or(InvalidKey::NoKey)?;
    Ok(first.secret.clone())
}

fn for_audience(keys: Vec<Key>, audience: &Audience) -> Result<Vec<SigningKey>, InvalidKey> {
    let keys = keys.into_iter();
    keys.map(|key| key.for_audience(audience.clone())).collect()
}

fn wrong(path: Option<&Path>, error: &InvalidKey) -> Failure {
    let path = path.unwrap_or(Path::new(""));
    Failure::Usage(format!("--signing-keys {}: {error}", path.display()))
}
