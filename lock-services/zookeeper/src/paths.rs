//! The paths of the nodes.

use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

use lock_core::ResourceName;

/// The characters that have a meaning in a path or in its escapes.
const RESERVED: &AsciiSet = &percent_encoding::CONTROLS.add(b'/').add(b'%');

/// The paths under one prefix.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    locks: String,
    floors: String,
}

impl Paths {
    /// `chroot` begins with a slash, or is empty.
    pub(super) fn new(chroot: &str, prefix: &str) -> Self {
        Self {
            locks: format!("{chroot}/{prefix}/locks"),
            floors: format!("{chroot}/{prefix}/floors"),
        }
    }

    /// The directory of all lock directories.
    pub(super) fn locks(&self) -> &str {
        &self.locks
    }

    /// The directory of all floors.
    pub(super) fn floors(&self) -> &str {
        &self.floors
    }

    /// The lock directory of a resource.
    pub(super) fn directory(&self, resource: &ResourceName) -> String {
        format!("{}/{}", self.locks, encode(resource))
    }

    /// The node that keeps the floor of a resource.
    pub(super) fn floor(&self, resource: &ResourceName) -> String {
        format!("{}/{}", self.floors, encode(resource))
    }
}

fn encode(resource: &ResourceName) -> String {
    match resource.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        name => utf8_percent_encode(name, RESERVED).to_string(),
    }
}

/// The resource whose lock directory has this name. `None` if it is no name of a resource.
pub(super) fn resource(directory: &str) -> Option<ResourceName> {
    let name = percent_decode_str(directory).decode_utf8().ok()?;
    ResourceName::new(name.into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: two resources in one directory, or a directory that ZooKeeper refuses, such as
    /// `..`.
    #[test]
    fn every_name_is_one_directory_and_comes_back() {
        let paths = Paths::new("/app", "palisade");
        for (name, path) in [
            ("account:42", "account:42"),
            ("a/b", "a%2Fb"),
            ("100%", "100%25"),
            ("%2F", "%252F"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
        ] {
            let name = ResourceName::new(name).unwrap();
            assert_eq!(
                paths.directory(&name),
                format!("/app/palisade/locks/{path}")
            );
            assert_eq!(paths.floor(&name), format!("/app/palisade/floors/{path}"));
            assert_eq!(resource(path), Some(name));
        }
    }
}
