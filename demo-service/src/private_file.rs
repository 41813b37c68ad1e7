use std::{fs, os::unix::fs::PermissionsExt, path::Path};

/// Warns if others on this machine can read or change a file that holds secrets. Its group may read
/// it: that is how a service reads what only root may change.
pub(crate) fn warn_if_open(path: &Path) {
    let mode = fs::metadata(path).map(|it| it.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o027 != 0) {
        let shown = path.display();
        tracing::warn!(
            "others can read or change {shown}, which holds secrets: say chmod 600, or 640"
        );
    }
}
