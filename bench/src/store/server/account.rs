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
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// `None` if we are not root: then the directory, which we have just made, needs no other
    /// owner.
    pub(super) fn for_server(name: &str, directory: &Path) -> io::Result<Option<Self>> {
        if fs::metadata(directory)?.uid() != 0 {
            return Ok(None);
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        let account = accounts.lines().find_map(|line| Self::read(name, line));
        let account = account.ok_or_else(|| io::Error::other(format!("no account `{name}`")))?;
        account.own(directory)?;
        Ok(Some(account))
    }

    pub(super) fn own(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// The program, to be run in this directory, and under this account if there is one.
    pub(super) fn command(account: Option<&Self>, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory);
        if let Some(account) = account {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Reads `NAME:x:UID:GID:..`.
    fn read(name: &str, line: &str) -> Option<Self> {
        let (is, fields) = line.split_once(':')?;
        let mut fields = fields.split(':').skip(1);
        (is == name).then_some(Self {
            uid: fields.next()?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    }
}
