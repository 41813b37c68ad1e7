//! TLS between client and server, which the feature `tls` brings.

use redis::{ConnectionAddr, RedisError};

#[cfg(not(feature = "tls"))]
use lock_core::ErrorKind;
use lock_core::{Error, backend::support::tls_files::TlsFiles};

/// A transport with TLS. Its address has no meaning.
#[cfg(feature = "tls")]
pub(crate) fn transport(files: &TlsFiles) -> Result<ConnectionAddr, Error> {
    use redis::{Client, ClientTlsConfig, TlsCertificates};

    use lock_core::backend::support::tls_files::no_pem;

    // rustls panics if a program has several providers of cryptography and has not chosen one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread has installed a provider first, which is also fine.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let pems = files.read()?;
    let certificates = TlsCertificates {
        client_tls: pems
            .identity
            .map(|(client_cert, client_key)| ClientTlsConfig {
                client_cert,
                client_key,
            }),
        root_cert: pems.ca,
    };
    let nowhere = ConnectionAddr::TcpTls {
        host: String::new(),
        port: 0,
        insecure: false,
        tls_params: None,
    };
    let client = Client::build_with_tls(nowhere, certificates);
    let client = client.map_err(|error| no_pem().caused_by(error))?;
    Ok(client.get_connection_info().addr().clone())
}

#[cfg(not(feature = "tls"))]
pub(crate) fn transport(_files: &TlsFiles) -> Result<ConnectionAddr, Error> {
    Err(Error::not_applied(ErrorKind::Unsupported)
        .because("rediss: needs the feature `redis-tls` of palisade, which is not compiled in"))
}

/// The reason why TLS refused a server, if connecting failed because of TLS.
#[cfg(feature = "tls")]
pub(crate) fn objection(error: &RedisError) -> Option<String> {
    use std::{error::Error as StdError, io, sync::Arc};

    // The client library returns the pointer, and not the error to which it points.
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

#[cfg(not(feature = "tls"))]
pub(crate) const fn objection(_error: &RedisError) -> Option<String> {
    None
}
