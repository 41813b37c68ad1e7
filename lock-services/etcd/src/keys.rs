use sha2::{Digest, Sha256};

use lock_core::{Holder, ResourceName};

/// The keys of the lock service in etcd.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// The names of one acquisition of a resource.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// `PREFIX/lock/RESOURCE/`: the prefix of the keys of its holder and of all its waiters.
    pub(super) queue: Vec<u8>,
    /// The key of the queue entry.
    pub(super) entry: Vec<u8>,
    /// `PREFIX/tombstone/..`: the memory of the acquisition.
    pub(super) tombstone: Vec<u8>,
    /// The last part of both names.
    pub(super) id: TombstoneId,
}

/// The name of a tombstone.
pub(super) type TombstoneId = [u8; 16];

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// The key of the floor. It is not under `lock/`, because `etcdctl lock` would wait for it
    /// there for ever.
    pub(super) fn floor(&self) -> Vec<u8> {
        format!("{}/floor", self.prefix).into_bytes()
    }

    /// The prefix of the keys of all locks.
    pub(super) fn locks(&self) -> Vec<u8> {
        format!("{}/lock/", self.prefix).into_bytes()
    }

    /// The prefix of the keys of the holder of a resource and of all its waiters.
    pub(super) fn queue(&self, resource: &ResourceName) -> Vec<u8> {
        let mut queue = self.locks();
        for byte in resource.as_str().bytes() {
            match byte {
                // Otherwise the lock of `a` would have the keys of `a/b` in its queue.
                b'/' => queue.extend_from_slice(b"%2F"),
                b'%' => queue.extend_from_slice(b"%25"),
                plain => queue.push(plain),
            }
        }
        queue.push(b'/');
        queue
    }

    /// The resource in whose queue this key is, if it is in one.
    pub(super) fn resource(&self, key: &[u8]) -> Option<ResourceName> {
        let key = std::str::from_utf8(key).ok()?;
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix("/lock/")?;
        let (name, _) = rest.split_once('/')?;
        ResourceName::new(name.replace("%2F", "/").replace("%25", "%")).ok()
    }

    /// The key of a tombstone.
    pub(super) fn tombstone(&self, id: &TombstoneId) -> Vec<u8> {
        let prefix = format!("{}/tombstone/", self.prefix);
        named(prefix.into_bytes(), id)
    }

    /// The names of an acquisition. They are derived from the holder, so that any process can find
    /// the acquisition again after a lost answer. The holder cannot be derived from them.
    pub(super) fn names(&self, resource: &ResourceName, holder: Holder) -> Names {
        let mut hash = Sha256::new_with_prefix(b"palisade/etcd/acquisition\0");
        hash.update(holder.expose_bytes());
        hash.update(resource.as_str());
        let hash: [u8; 32] = hash.finalize().into();
        let id = std::array::from_fn(|index| hash[index]);
        let queue = self.queue(resource);
        Names {
            entry: named(queue.clone(), &id),
            tombstone: self.tombstone(&id),
            queue,
            id,
        }
    }
}

/// A key with this prefix.
fn named(mut prefix: Vec<u8>, id: &TombstoneId) -> Vec<u8> {
    for digit in id.iter().flat_map(|byte| [byte >> 4, byte & 0xf]) {
        prefix.push(b"0123456789abcdef"[usize::from(digit)]);
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> ResourceName {
        ResourceName::new(name).unwrap()
    }

    /// Catches: resources whose names are prefixes of each other share a queue, or a key shows the
    /// secret.
    #[test]
    fn no_line_lies_within_another() {
        let keys = Keys::new("p");
        for (one, other) in [("a", "ab"), ("a", "a/b"), ("a", "a%2Fb"), ("a/b", "a%2Fb")] {
            let (one, other) = (keys.queue(&resource(one)), keys.queue(&resource(other)));
            assert!(!one.starts_with(&other) && !other.starts_with(&one));
        }
        for name in ["a", "a/b", "a%2Fb", "%", "/", "%252F"] {
            let entry = keys.names(&resource(name), Holder::random()).entry;
            assert_eq!(keys.resource(&entry), Some(resource(name)), "{name}");
        }
        let holder = Holder::random();
        let tombstone = keys.names(&resource("a"), holder).tombstone;
        let tombstone = String::from_utf8(tombstone).unwrap();
        assert!(!tombstone.contains(&holder.expose()[..16]));
    }
}
