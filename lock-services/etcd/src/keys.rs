use sha2::{Digest, Sha256};

use lock_core::{Holder, ResourceName};

/// Where everything is kept.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// What one acquisition of a resource is called.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// `PREFIX/lock/RESOURCE/`: what the keys of all who want it begin with.
    pub(super) line: Vec<u8>,
    /// `PREFIX/mark/..`: what is remembered of this acquisition.
    pub(super) mark: Vec<u8>,
    /// The numbers of its leases, one for each round, are derived from this.
    seed: [u8; 32],
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// The key of the floor. Not under `lock/`, where `etcdctl lock` would wait for it for ever.
    pub(super) fn floor(&self) -> Vec<u8> {
        format!("{}/floor", self.prefix).into_bytes()
    }

    /// What the keys of all locks begin with.
    pub(super) fn locks(&self) -> Vec<u8> {
        format!("{}/lock/", self.prefix).into_bytes()
    }

    /// What the keys of all who want a resource begin with.
    pub(super) fn line(&self, resource: &ResourceName) -> Vec<u8> {
        let mut line = self.locks();
        for byte in resource.as_str().bytes() {
            match byte {
                // Otherwise the lock of `a` would have the keys of `a/b` in its line.
                b'/' => line.extend_from_slice(b"%2F"),
                b'%' => line.extend_from_slice(b"%25"),
                plain => line.push(plain),
            }
        }
        line.push(b'/');
        line
    }

    /// The resource in whose line this key is, if it is in one.
    pub(super) fn resource(&self, key: &[u8]) -> Option<ResourceName> {
        let key = std::str::from_utf8(key).ok()?;
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix("/lock/")?;
        let (name, _) = rest.split_once('/')?;
        ResourceName::new(name.replace("%2F", "/").replace("%25", "%")).ok()
    }

    /// A mark for a single request, which belongs to no acquisition and which nobody else has.
    pub(super) fn fresh_mark(&self) -> Vec<u8> {
        format!("{}/mark/{:032x}", self.prefix, rand::random::<u128>()).into_bytes()
    }

    /// What an acquisition is called. It is derived from the holder, so that after a lost answer
    /// any process can ask for it again. The holder cannot be derived from it.
    pub(super) fn names(&self, resource: &ResourceName, holder: Holder) -> Names {
        let mut seed = Sha256::new_with_prefix(b"palisade/etcd/acquisition\0");
        seed.update(holder.expose_bytes());
        seed.update(resource.as_str());
        let seed: [u8; 32] = seed.finalize().into();
        let mut mark = format!("{}/mark/", self.prefix);
        for byte in &seed[..16] {
            mark.push_str(&format!("{byte:02x}"));
        }
        Names {
            line: self.line(resource),
            mark: mark.into_bytes(),
            seed,
        }
    }
}

impl Names {
    /// The number of the lease of a round, always above 0.
    pub(super) fn lease(&self, round: u32) -> i64 {
        let mut hash = Sha256::new_with_prefix(b"palisade/etcd/lease\0");
        hash.update(self.seed);
        hash.update(round.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let number = i64::from_be_bytes(std::array::from_fn(|index| hash[index]));
        std::cmp::max(number & i64::MAX, 1)
    }

    /// The place in line of a lease: as `etcdctl lock` names it.
    pub(super) fn place(&self, lease: i64) -> Vec<u8> {
        let mut place = self.line.clone();
        place.extend_from_slice(format!("{lease:x}").as_bytes());
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> ResourceName {
        ResourceName::new(name).unwrap()
    }

    #[test]
    fn no_line_lies_within_another() {
        let keys = Keys::new("p");
        for (one, other) in [("a", "ab"), ("a", "a/b"), ("a", "a%2Fb"), ("a/b", "a%2Fb")] {
            let (one, other) = (keys.line(&resource(one)), keys.line(&resource(other)));
            assert!(!one.starts_with(&other) && !other.starts_with(&one));
        }
        for name in ["a", "a/b", "a%2Fb", "%", "/", "%252F"] {
            let place = keys.names(&resource(name), Holder::random()).place(7);
            assert_eq!(keys.resource(&place), Some(resource(name)), "{name}");
        }
    }

    #[test]
    fn an_acquisition_has_names_of_its_own() {
        let (keys, holder) = (Keys::new("p"), Holder::random());
        let names = keys.names(&resource("a"), holder);
        assert_eq!(names.lease(0), keys.names(&resource("a"), holder).lease(0));
        assert_ne!(names.lease(0), names.lease(1));
        assert_ne!(names.lease(0), keys.names(&resource("b"), holder).lease(0));
        assert_eq!(names.place(0xab), b"p/lock/a/ab");
        let text = String::from_utf8(names.mark).unwrap();
        assert_eq!(text.len(), keys.fresh_mark().len());
        assert_ne!(keys.fresh_mark(), keys.fresh_mark());
        assert!(!text.contains(&holder.expose()[..16]));
    }
}
