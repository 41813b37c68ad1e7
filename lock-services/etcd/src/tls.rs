//! TLS between client and server, which the feature `tls` brings.

use tonic::transport::Endpoint;

#[cfg(not(feature = "tls"))]
use lock_core::ErrorKind;
use lock_core::{Error, backend::support::tls_files::TlsFiles};

/// The scheme of a node's URL for the transport underneath.
pub(super) const fn scheme(files: Option<&TlsFiles>) -> &'static str {
    match files {
        Some(_) => "https",
        None => "http",
    }
}

/// Makes the connections to a node use TLS.
#[cfg(feature = "tls")]
pub(super) fn secure(endpoint: Endpoint, files: &TlsFiles) -> Result<Endpoint, Error> {
    use tonic::transport::{Certificate, ClientTlsConfig, Identity};

    use lock_core::backend::support::tls_files::no_pem;

    let pems = files.read()?;
    let config = match pems.ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let config = match pems.identity {
        Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
        None => config,
    };
    let secured = endpoint.tls_config(config);
    secured.map_err(|error| no_pem().caused_by(error))
}

#[cfg(not(feature = "tls"))]
pub(super) fn secure(_endpoint: Endpoint, _files: &TlsFiles) -> Result<Endpoint, Error> {
    Err(Error::not_applied(ErrorKind::Unsupported)
        .because("etcds: needs the feature `etcd-tls` of palisade, which is not compiled in"))
}
