use sha2::{Digest, Sha256};

use crate::{AttemptId, ResourceName};

/// Where everything lies on the server.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    shards: u16,
}

/// The keys of one resource. `{n}` is the hash tag: a shard lives in one slot of a cluster.
#[derive(Debug)]
pub(super) struct ResourceKeys<'a> {
    pub(super) shard: u16,
    /// `prefix:{n}`
    base: String,
    resource: &'a ResourceName,
}

impl Keys {
    pub(super) const fn new(prefix: String, shards: u16) -> Self {
        Self { prefix, shards }
    }

    pub(super) const fn shards(&self) -> u16 {
        self.shards
    }

    /// Format version and shard count, written once.
    pub(super) fn config(&self) -> String {
        format!("{}:config", self.prefix)
    }

    /// The channel on which a client takes the grants of a shard.
    pub(super) fn channel(&self, shard: u16, client: &str) -> String {
        format!("{}:grants:{client}", self.base(shard))
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

    fn base(&self, shard: u16) -> String {
        format!("{}:{{{shard}}}", self.prefix)
    }

    pub(super) fn of<'a>(&self, resource: &'a ResourceName) -> ResourceKeys<'a> {
        let shard = self.shard(resource);
        ResourceKeys {
            shard,
            base: self.base(shard),
            resource,
        }
    }

    /// The shard of a resource: a hash of its name, or of its `{tag}`, so that resources that are
    /// to be locked together can be put into one shard. The tag is hashed too, never used as it is.
    fn shard(&self, resource: &ResourceName) -> u16 {
        let digest = Sha256::digest(tag(resource.as_str()));
        let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        u16::try_from(number % u32::from(self.shards)).unwrap_or_default()
    }
}

impl ResourceKeys<'_> {
    /// The token counter of the shard. No time to live; nothing deletes it.
    pub(super) fn counter(&self) -> String {
        format!("{}:counter", self.base)
    }

    /// The lease.
    pub(super) fn lease(&self) -> String {
        format!("{}:lease:{}", self.base, self.resource)
    }

    /// The line of waiters: a sorted set of holders by ticket.
    pub(super) fn line(&self) -> String {
        format!("{}:line:{}", self.base, self.resource)
    }

    /// What is aside: a sorted set of who could not be reached, by since when.
    pub(super) fn aside(&self) -> String {
        format!("{}:aside:{}", self.base, self.resource)
    }

    /// The details of the waiters, a hash.
    pub(super) fn waiters(&self) -> String {
        format!("{}:waiters:{}", self.base, self.resource)
    }

    /// The tombstone of an acquisition that was released, by the digest of its holder.
    pub(super) fn tombstone(&self, digest: &str) -> String {
        format!("{}:ended:{digest}", self.base)
    }

    /// The tombstone of an attempt that was cancelled.
    pub(super) fn tombstone_of_attempt(&self, digest: &str, attempt: AttemptId) -> String {
        format!("{}:ended:{digest}:{attempt}", self.base)
    }

    /// What the channels begin with on which clients take the grants of this shard.
    pub(super) fn channels(&self) -> String {
        format!("{}:grants:", self.base)
    }
}

fn tag(name: &str) -> &str {
    name.split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map_or(name, |(tag, _)| if tag.is_empty() { name } else { tag })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(name: &str) -> u16 {
        Keys::new("palisade".into(), 64).shard(&ResourceName::new(name).unwrap())
    }

    #[test]
    fn a_tag_puts_resources_into_one_shard() {
        assert_eq!(shard("{user:1}:cart"), shard("orders:{user:1}"));
        assert_eq!(tag("a{}b"), "a{}b");
        assert_eq!(tag("a{b"), "a{b");
        let used: std::collections::HashSet<_> = (0..1000)
            .map(|number| shard(&format!("account:{number}")))
            .collect();
        assert_eq!(used.len(), 64, "a thousand names reach every shard");
    }

    #[test]
    fn a_lease_names_its_resource() {
        let keys = Keys::new("palisade".into(), 64);
        for name in ["account:42", "{user:1}:cart", "}:lease:{", "a/b"] {
            let resource = ResourceName::new(name).unwrap();
            assert_eq!(
                keys.resource_of(&keys.of(&resource).lease()),
                Some(resource)
            );
        }
        assert_eq!(keys.resource_of("other:{1}:lease:a"), None);
    }

    #[test]
    fn braces_of_a_name_never_become_the_hash_tag() {
        let keys = Keys::new("palisade".into(), 64);
        let resource = ResourceName::new("{evil}").unwrap();
        assert_eq!(
            tag(&keys.of(&resource).lease()),
            shard("{evil}").to_string()
        );
    }
}
