//! TLS between client and server, which the feature `redis-tls` brings.

use std::path::PathBuf;

use redis::{ConnectionAddr, RedisError};

use super::KIND;
use crate::{Error, ErrorKind, Operation};

/// Files in PEM format that the URL names.
#[derive(Debug, Default)]
pub(super) struct TlsFiles {
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// The client's own certificate, and those between it and its root.
    pub(super) certificate: Option<PathBuf>,
    /// The private key of that certificate.
    pub(super) key: Option<PathBuf>,
}

/// A transport with TLS; its address means nothing.
#[cfg(feature = "redis-tls")]
pub(super) fn transport(files: &TlsFiles) -> Result<ConnectionAddr, Error> {
    use redis::{Client, ClientTlsConfig, TlsCertificates};

    // rustls panics if a program has several providers of cryptography and has not chosen one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that somebody else was faster, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let client_tls = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => Some(ClientTlsConfig {
            client_cert: read(certificate)?,
            client_key: read(key)?,
        }),
        (None, None) => None,
        _ => return Err(invalid("tls_cert and tls_key need each other".to_owned())),
    };
    let root_cert = files.ca.as_ref().map(read).transpose()?;
    let certificates = TlsCertificates {
        client_tls,
        root_cert,
    };
    let nowhere = ConnectionAddr::TcpTls {
        host: String::new(),
        port: 0,
        insecure: false,
        tls_params: None,
    };
    let client = Client::build_with_tls(nowhere, certificates).map_err(|error| {
        invalid("tls_ca, tls_cert or tls_key is no PEM file of its kind".to_owned())
            .caused_by(error)
    })?;
    Ok(client.get_connection_info().addr().clone())
}

#[cfg(not(feature = "redis-tls"))]
pub(super) fn transport(_files: &TlsFiles) -> Result<ConnectionAddr, Error> {
    Err(
        Error::not_applied(ErrorKind::Unsupported, Operation::Connect, KIND).because(
            "rediss: needs the feature `redis-tls` of lock-core, which is not compiled in",
        ),
    )
}

/// What TLS has against a server, if that is why connecting to it failed.
#[cfg(feature = "redis-tls")]
pub(super) fn objection(error: &RedisError) -> Option<String> {
    use std::{error::Error as StdError, io, sync::Arc};

    // The client library hands out the pointer, not what it points to.
    let source = error
        .source()?
        .downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
    let io = source.downcast_ref::<io::Error>()?;
    let tls = io.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(format!(
        "TLS failed: {tls}; tls_ca in the URL names the authority to trust, and tls_cert and \
         tls_key the client's own certificate",
    ))
}

#[cfg(not(feature = "redis-tls"))]
pub(super) const fn objection(_error: &RedisError) -> Option<String> {
    None
}

#[cfg(feature = "redis-tls")]
fn read(path: &PathBuf) -> Result<Vec<u8>, Error> {
    // Three small files, once per lock service: not worth a thread.
    std::fs::read(path)
        .map_err(|error| invalid(format!("{} cannot be read", path.display())).caused_by(error))
}

#[cfg(feature = "redis-tls")]
fn invalid(why: String) -> Error {
    Error::not_applied(ErrorKind::InvalidInput, Operation::Connect, KIND).because(why)
}
