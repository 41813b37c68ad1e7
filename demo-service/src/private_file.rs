use std::{fs, os::unix::fs::PermissionsExt, path::Path};

/// Warns if others on this machine can read a file that holds secrets.
pub(crate) fn warn_if_open(path: &Path) {
    let mode = fs::metadata(path).map(|it| it.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o077 != 0) {
        let shown = path.display();
        tracing::warn!("others can read {shown}, which holds secrets: chmod 600 is better");
    }
}
