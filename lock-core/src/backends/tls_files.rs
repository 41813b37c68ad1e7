use std::path::PathBuf;

#[cfg(any(feature = "etcd-tls", feature = "redis-tls"))]
use {super::setup::invalid, crate::Error};

/// Files in PEM format that a URL names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TlsFiles {
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// What is in them.
#[cfg(any(feature = "etcd-tls", feature = "redis-tls"))]
pub(super) struct Pems {
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<Vec<u8>>,
    /// The client's own certificate, with those between it and its root, and its private key.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsFiles {
    /// Takes a parameter of the URL, unless it is none of these.
    pub(super) fn take(&mut self, name: &str, value: &str) -> bool {
        let file = match name {
            "tls_ca" => &mut self.ca,
            "tls_cert" => &mut self.certificate,
            "tls_key" => &mut self.key,
            _ => return false,
        };
        *file = Some(value.into());
        true
    }

    /// Reads them all. They are three small ones, read when a client is made: not worth a thread.
    #[cfg(any(feature = "etcd-tls", feature = "redis-tls"))]
    pub(super) fn read(&self, kind: &'static str) -> Result<Pems, Error> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| {
                let why = format!("{} cannot be read", path.display());
                invalid(kind, why).caused_by(error)
            })
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            (None, None) => None,
            _ => return Err(invalid(kind, "tls_cert and tls_key need each other")),
        };
        let ca = self.ca.as_ref().map(read).transpose()?;
        Ok(Pems { ca, identity })
    }
}

/// The error if a library cannot use them.
#[cfg(any(feature = "etcd-tls", feature = "redis-tls"))]
pub(super) fn no_pem(kind: &'static str) -> Error {
    invalid(
        kind,
        "tls_ca, tls_cert or tls_key is no PEM file of its kind",
    )
}
