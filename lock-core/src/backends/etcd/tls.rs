//! TLS between client and server, which the feature `etcd-tls` brings.

use tonic::transport::Endpoint;

use super::{KIND, service_url::TlsFiles};
use crate::{Error, ErrorKind, Operation};

/// What a URL begins with for the transport underneath.
pub(super) const fn scheme(files: Option<&TlsFiles>) -> &'static str {
    match files {
        Some(_) => "https",
        None => "http",
    }
}

/// Has a node spoken to over TLS.
#[cfg(feature = "etcd-tls")]
pub(super) fn secure(endpoint: Endpoint, files: &TlsFiles) -> Result<Endpoint, Error> {
    use tonic::transport::{Certificate, ClientTlsConfig, Identity};

    let config = match &files.ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let config = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            config.identity(Identity::from_pem(read(certificate)?, read(key)?))
        }
        (None, None) => config,
        _ => return Err(invalid("tls_cert and tls_key need each other".to_owned())),
    };
    endpoint.tls_config(config).map_err(|error| {
        invalid("tls_ca, tls_cert or tls_key is no PEM file of its kind".to_owned())
            .caused_by(error)
    })
}

#[cfg(not(feature = "etcd-tls"))]
pub(super) fn secure(_endpoint: Endpoint, _files: &TlsFiles) -> Result<Endpoint, Error> {
    Err(
        Error::not_applied(ErrorKind::Unsupported, Operation::Connect, KIND)
            .because("etcds: needs the feature `etcd-tls` of lock-core, which is not compiled in"),
    )
}

#[cfg(feature = "etcd-tls")]
fn read(path: &std::path::PathBuf) -> Result<Vec<u8>, Error> {
    // Three small files, once per node: not worth a thread.
    std::fs::read(path)
        .map_err(|error| invalid(format!("{} cannot be read", path.display())).caused_by(error))
}

#[cfg(feature = "etcd-tls")]
fn invalid(why: String) -> Error {
    Error::not_applied(ErrorKind::InvalidInput, Operation::Connect, KIND).because(why)
}
