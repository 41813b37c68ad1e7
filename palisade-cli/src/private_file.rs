use std::{fs, os::unix::fs::PermissionsExt, path::Path};

/// The warning if others on this machine can read or change a file with secrets. The group of the
/// file may read it, so that a service can read a file that only root may change.
pub(crate) fn warning(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    let shown = path.display();
    (mode & 0o027 != 0).then(|| {
        format!("others can read or change {shown}, which has secrets in it: run chmod 600, or 640")
    })
}
