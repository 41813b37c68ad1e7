use std::{fmt, io::Write, sync::Arc};

use lock_core::ResourceName;
use redis::{RedisWrite, ToRedisArgs};

/// The keys of the lock service on the server.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    shards: u16,
    /// For each shard, the prefix of its keys: `prefix:{n}:`. The number is the hash tag: a shard
    /// lives in one slot of a cluster.
    bases: Arc<[String]>,
}

/// The keys of one resource.
#[derive(Debug)]
pub(super) struct ResourceKeys<'a> {
    pub(super) shard: u16,
    base: &'a str,
    resource: &'a str,
}

/// A key, in pieces that are put together where it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a>([&'a str; 3]);

impl Keys {
    pub(super) fn new(prefix: &str, shards: u16) -> Self {
        Self {
            prefix: prefix.to_owned(),
            shards,
            bases: (0..shards)
                .map(|shard| format!("{prefix}:{{{shard}}}:"))
                .collect(),
        }
    }

    pub(super) const fn shards(&self) -> u16 {
        self.shards
    }

    /// Format version and shard count, written once.
    pub(super) fn config(&self) -> String {
        format!("{}:config", self.prefix)
    }

    /// The channel on which a client receives the grants of a shard.
    pub(super) fn channel(&self, shard: u16, client: &str) -> String {
        format!("{}grants:{client}", self.base(shard))
    }

    /// The pattern of all leases.
    pub(super) fn all_leases(&self) -> String {
        format!("{}:{{*}}:lease:*", self.prefix)
    }

    /// The resource whose lease has this key.
    pub(super) fn resource_of(&self, lease: &str) -> Option<ResourceName> {
        let rest = lease.strip_prefix(&self.prefix)?.strip_prefix(":{")?;
        let (_, name) = rest.split_once("}:lease:")?;
        ResourceName::new(name).ok()
    }

    fn base(&self, shard: u16) -> &str {
        &self.bases[usize::from(shard)]
    }

    pub(super) fn of<'a>(&'a self, resource: &'a ResourceName) -> ResourceKeys<'a> {
        self.in_shard(self.shard(resource), resource)
    }

    /// The keys of a resource whose shard is known.
    pub(super) fn in_shard<'a>(
        &'a self,
        shard: u16,
        resource: &'a ResourceName,
    ) -> ResourceKeys<'a> {
        ResourceKeys {
            shard,
            base: self.base(shard),
            resource: resource.as_str(),
        }
    }

    /// The shard of a resource: a hash of its name, or of its `{tag}`, so that resources that are
    /// to be locked together can be put into one shard. The tag is never used as it is, but hashed,
    /// too.
    pub(super) fn shard(&self, resource: &ResourceName) -> u16 {
        let number = fnv1a(tag(resource.as_str())) % u64::from(self.shards);
        u16::try_from(number).unwrap_or_default()
    }
}

impl<'a> ResourceKeys<'a> {
    /// The token counter of the shard. It has no time to live, and nothing deletes it.
    pub(super) const fn counter(&self) -> Key<'a> {
        Key([self.base, "counter", ""])
    }

    /// The lease. `lua/keys.lua` derives the names of the resource's other keys from it.
    pub(super) const fn lease(&self) -> Key<'a> {
        Key([self.base, "lease:", self.resource])
    }

    /// A key that never exists. A node of a cluster from which a slot is being moved runs a script
    /// if all its keys are there. But a key that the script then deletes counts as moved, and the
    /// script fails half way when it uses that key again. With this absent key the node does not
    /// run the script at all.
    pub(super) const fn absent(&self) -> Key<'a> {
        Key([self.base, "absent", ""])
    }
}

impl ToRedisArgs for Key<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let mut writer = out.writer_for_next_arg();
        for piece in self.0 {
            // Writing into memory does not fail.
            writer.write_all(piece.as_bytes()).ok();
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv). Each request hashes a name, so the hash is fast. It may
/// be easy to guess.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn tag(name: &str) -> &str {
    name.split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map_or(name, |(tag, _)| if tag.is_empty() { name } else { tag })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of the draft.
    #[test]
    fn names_are_hashed_as_by_other_clients() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    /// Catches: braces in a name that become the hash tag, so that a key is in another slot than
    /// the counter of its shard. Also a list that shows another name than the one that was
    /// acquired.
    #[test]
    fn braces_of_a_name_choose_its_shard_and_nothing_else() {
        let keys = Keys::new("palisade", 64);
        let shard = |name: &str| keys.shard(&ResourceName::new(name).unwrap());
        assert_eq!(shard("{user:1}:cart"), shard("orders:{user:1}"));
        for name in ["account:42", "{user:1}:cart", "}:lease:{", "a{}b", "a{b"] {
            let resource = ResourceName::new(name).unwrap();
            let lease = keys.of(&resource).lease().to_string();
            assert_eq!(tag(&lease), shard(name).to_string());
            assert_eq!(keys.resource_of(&lease), Some(resource));
        }
        assert_eq!(keys.resource_of("other:{1}:lease:a"), None);
    }
}
