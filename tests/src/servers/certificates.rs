use std::{io, path::PathBuf, process::Command};

use tempfile::TempDir;

use super::blocking;

/// Certificates of an authority for one test: for a server at 127.0.0.1, and for a client.
///
/// The files are deleted with this value.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// Creates the certificates with `openssl`.
    ///
    /// # Panics
    /// If it is not installed.
    pub async fn create() -> Self {
        let made = blocking(|| {
            let dir = tempfile::tempdir()?;
            let authority = ["-x509", "-subj", "/CN=a test\u{27}s authority"];
            make(&dir, "ca", &authority)?;
            for (name, extension) in [
                ("server", "subjectAltName=IP:127.0.0.1"),
                ("client", "extendedKeyUsage=clientAuth"),
            ] {
                let signed = [
                    "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", "-subj", "/CN=e2e",
                ];
                // By default a certificate belongs to an authority, and clients refuse it for a
                // server.
                let end = [
                    "-addext",
                    "basicConstraints=critical,CA:false",
                    "-addext",
                    extension,
                ];
                make(&dir, name, &[&signed[..], &end[..]].concat())?;
            }
            Ok(dir)
        });
        let dir = made
            .await
            .unwrap_or_else(|error| panic!("cannot make certificates: {error}"));
        Self { dir }
    }

    /// The certificate of the authority.
    pub fn ca(&self) -> String {
        self.file("ca.pem")
    }

    /// The server's certificate.
    pub fn server(&self) -> String {
        self.file("server.pem")
    }

    /// Its private key.
    pub fn server_key(&self) -> String {
        self.file("server.key")
    }

    /// A client's certificate.
    pub fn client(&self) -> String {
        self.file("client.pem")
    }

    /// Its private key.
    pub fn client_key(&self) -> String {
        self.file("client.key")
    }

    fn file(&self, name: &str) -> String {
        let path: PathBuf = self.dir.path().join(name);
        path.to_string_lossy().into_owned()
    }
}

fn make(dir: &TempDir, name: &str, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("openssl")
        .current_dir(dir)
        .args([
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-noenc", "-days", "2", "-keyout", &format!("{name}.key")])
        .args(["-out", &format!("{name}.pem")])
        .args(arguments)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr)))
}
