use sha2::{Digest, Sha256};

use crate::{AttemptRef, Holder, ResourceName};

/// Where everything lies on the server. `{n}` is the hash tag: a shard lives in one cluster slot.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
    shards: u16,
}

impl Keys {
    pub(super) const fn new(prefix: String, shards: u16) -> Self {
        Self { prefix, shards }
    }

    /// The shard of a resource: a hash of its name, or of its `{tag}`, so that resources that are
    /// to be locked together can be put into one shard. The tag is hashed too, never used as it is.
    pub(super) fn shard(&self, resource: &ResourceName) -> u16 {
        let digest = Sha256::digest(tag(resource.as_str()));
        let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        let shard = number % u32::from(self.shards);
        u16::try_from(shard).unwrap_or_default()
    }

    /// Format version and shard count, written once.
    pub(super) fn config(&self) -> String {
        format!("{}:config", self.prefix)
    }

    /// The token counter of a shard. No time to live; nothing deletes it.
    pub(super) fn counter(&self, shard: u16) -> String {
        format!("{}:{{{shard}}}:counter", self.prefix)
    }

    /// The lease of a resource.
    pub(super) fn lease(&self, resource: &ResourceName) -> String {
        format!(
            "{}:{{{}}}:lease:{resource}",
            self.prefix,
            self.shard(resource)
        )
    }

    /// The tombstone of an acquisition that was released.
    pub(super) fn tombstone(&self, resource: &ResourceName, holder: Holder) -> String {
        format!(
            "{}:{{{}}}:ended:{}",
            self.prefix,
            self.shard(resource),
            holder.digest()
        )
    }

    /// The tombstone of an attempt that was cancelled.
    pub(super) fn tombstone_of_attempt(&self, attempt: &AttemptRef) -> String {
        format!(
            "{}:{}",
            self.tombstone(&attempt.resource, attempt.holder),
            attempt.id
        )
    }

    /// The channel on which a resource is announced to be free.
    pub(super) fn channel(&self, resource: &ResourceName) -> String {
        format!(
            "{}:{{{}}}:free:{resource}",
            self.prefix,
            self.shard(resource)
        )
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

    #[test]
    fn a_tag_puts_resources_into_one_shard() {
        let keys = Keys::new("palisade".into(), 64);
        let shard = |name: &str| keys.shard(&ResourceName::new(name).unwrap());
        assert_eq!(shard("{user:1}:cart"), shard("orders:{user:1}"));
        assert_eq!(tag("a{}b"), "a{}b");
        assert_eq!(tag("a{b"), "a{b");
        let used: std::collections::HashSet<_> = (0..1000)
            .map(|number| shard(&format!("account:{number}")))
            .collect();
        assert_eq!(used.len(), 64, "a thousand names reach every shard");
    }

    #[test]
    fn braces_of_a_name_never_become_the_hash_tag() {
        let keys = Keys::new("palisade".into(), 64);
        let resource = ResourceName::new("{evil}").unwrap();
        let lease = keys.lease(&resource);
        assert_eq!(tag(&lease), keys.shard(&resource).to_string());
    }
}
