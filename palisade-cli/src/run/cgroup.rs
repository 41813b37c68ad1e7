//! A control group of its own for the command, if this process may make one. A process that leaves
//! the process group, as a daemon does, cannot leave the control group.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

/// A folder of cgroup v2. Guardian and supervisor know it by the same name, so that each of them
/// can remove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// The cgroup for the command of a guardian, inside the cgroup of this process. `None` if there
    /// is no cgroup v2.
    pub(super) fn of(guardian: Pid) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let name = format!("{}{}", prefix()?, guardian.as_raw_nonzero());
        Some(Self(folder(&own, &mounts)?.join(name)))
    }

    /// Makes the cgroup, with this process in it. Does nothing if this process may not make it, or
    /// if the processes of a cgroup cannot be killed at once (before Linux 5.14).
    pub(super) fn make_for(&self, process: Pid) {
        self.remove_abandoned();
        let made = fs::create_dir(&self.0);
        if made.is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
            return;
        }
        if self.0.join("cgroup.kill").exists()
            && let Err(error) = self.add(process)
        {
            tracing::debug!(%error, "the command has no cgroup of its own");
        }
    }

    /// Removes cgroups whose guardian and supervisor were killed at the same time.
    fn remove_abandoned(&self) {
        let Some(prefix) = prefix() else {
            return;
        };
        let siblings = self.0.parent().and_then(|parent| fs::read_dir(parent).ok());
        for sibling in siblings.into_iter().flatten().flatten() {
            let name = sibling.file_name();
            let guardian = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            let is_abandoned = |guardian| !Path::new("/proc").join(guardian).exists();
            if guardian.is_some_and(is_abandoned) {
                Self(sibling.path()).remove();
            }
        }
    }

    /// Puts a process into the cgroup. Processes that it starts are in the cgroup, too.
    fn add(&self, process: Pid) -> io::Result<()> {
        let number = process.as_raw_nonzero().to_string();
        fs::write(self.0.join("cgroup.procs"), number)
    }

    /// The processes in the cgroup, and in cgroups that they have made inside of it.
    pub(super) fn processes(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let numbers = list.lines().filter_map(|line| line.parse().ok());
        let own = numbers.filter_map(Pid::from_raw);
        own.chain(self.inner().flat_map(|inner| inner.processes()))
            .collect()
    }

    fn inner(&self) -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|folder| Self(folder.path()))
    }

    /// Kills all processes of the cgroup at once, also processes that are just being started.
    pub(super) fn kill(&self) {
        // If the cgroup is gone, its processes are gone, too.
        let _gone = fs::write(self.0.join("cgroup.kill"), "1");
    }

    /// Removes the folder, which may have no process, and those inside of it.
    pub(super) fn remove(&self) {
        self.inner().for_each(|inner| inner.remove());
        // The other process may have removed it.
        let _removed = fs::remove_dir(&self.0);
    }
}

/// The part of the name of the folder before the number of the guardian. It contains the number of
/// a namespace, because several containers may share the folders of cgroups.
fn prefix() -> Option<String> {
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    let number = namespace
        .to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?;
    Some(format!("palisade-run-{number}-"))
}

/// The folder of the cgroup of a process.
fn folder(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ")
            .then_some(place)?
            .split(' ')
            .nth(4)
    })?;
    Some(Path::new(mount).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a folder of cgroup v1, where nothing can be killed at once.
    #[test]
    fn the_folder_is_that_of_version_2() {
        let own = "4:memory:/user\n0::/system.slice/cron.service\n";
        let mounts = "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 24 0:27 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let folder = folder(own, mounts).unwrap();
        let expected = "/sys/fs/cgroup/unified/system.slice/cron.service";
        assert_eq!(folder, Path::new(expected));
    }
}
