use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

/// Another account to run a server under, because databases refuse to run as root.
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// `None` if we are not root: then `dir`, which we have just made, needs no other owner.
    pub(crate) fn to_run_under(name: &str, dir: &Path) -> io::Result<Option<Self>> {
        if fs::metadata(dir)?.uid() != 0 {
            return Ok(None);
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        let account = accounts.lines().find_map(|line| Self::read(name, line));
        account.map(Some).ok_or_else(|| {
            io::Error::other(format!(
                "the server does not run as root and there is no account `{name}`: \
                 run scripts/test, which installs it, or run the tests as another user",
            ))
        })
    }

    /// Gives files to the account.
    pub(crate) fn own(&self, paths: &[&Path]) -> io::Result<()> {
        for path in paths {
            chown(path, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }

    /// Makes a program run under the account.
    pub(crate) fn run(&self, program: &mut Command) {
        program.uid(self.uid).gid(self.gid);
    }

    /// Reads `NAME:x:UID:GID:..`.
    fn read(name: &str, line: &str) -> Option<Self> {
        let mut fields = line
            .strip_prefix(name)?
            .strip_prefix(':')?
            .split(':')
            .skip(1);
        Some(Self {
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    }
}
