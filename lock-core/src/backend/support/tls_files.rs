//! Files in PEM format that URLs name.

use std::path::PathBuf;

use super::connecting::{Settings, invalid};
use crate::Error;

/// Files in PEM format that a URL names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// The contents of the files.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pems {
    /// Certificates to trust instead of the system's.
    pub ca: Option<Vec<u8>>,
    /// The client's own certificate with the intermediate certificates, and its private key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// Takes the parameters of the URL.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a parameter that is given
    /// twice.
    pub fn take(settings: &mut Settings) -> Result<Self, Error> {
        let mut file = |name| settings.take(name);
        Ok(Self {
            ca: file("tls_ca")?.map(PathBuf::from),
            certificate: file("tls_cert")?.map(PathBuf::from),
            key: file("tls_key")?.map(PathBuf::from),
        })
    }

    /// Reads all files, on this thread: they are three small files, and are read only when a client
    /// is made.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a file that cannot be read,
    /// and for a certificate without its key.
    pub fn read(&self) -> Result<Pems, Error> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| {
                let why = format!("{} cannot be read", path.display());
                invalid(why).caused_by(error)
            })
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let key = read(key)?;
                check_key("tls_key", &key)?;
                Some((read(certificate)?, key))
            }
            (None, None) => None,
            _ => {
                return Err(invalid(
                    "the URL has only one of tls_cert and tls_key: give both",
                ));
            }
        };
        let ca = self.ca.as_ref().map(read).transpose()?;
        Ok(Pems { ca, identity })
    }
}

/// Refuses a private key with a passphrase, because the client libraries treat such a key as no
/// key.
pub(super) fn check_key(parameter: &str, pem: &[u8]) -> Result<(), Error> {
    // `BEGIN ENCRYPTED PRIVATE KEY`, or `Proc-Type: 4,ENCRYPTED` in older files.
    match pem.windows(9).any(|word| word == b"ENCRYPTED") {
        true => Err(invalid(format!(
            "{parameter}: the key has a passphrase: name one without, as made by \
             `openssl pkey -in KEY -out PLAIN`"
        ))),
        false => Ok(()),
    }
}

/// The error if a library cannot use the files.
#[must_use]
pub fn no_pem() -> Error {
    invalid("tls_ca, tls_cert or tls_key is no PEM file of its kind")
}
