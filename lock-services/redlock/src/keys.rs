use lock_core::ResourceName;

/// The keys on each node. A node is one server, so there are no shards.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    base: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            base: format!("{prefix}:redlock:"),
        }
    }

    /// The state of the node: see [`Marker`](super::marker::Marker). Without this key the node does
    /// not serve.
    pub(super) fn marker(&self) -> String {
        format!("{}node", self.base)
    }

    /// The counter of a resource. It has no time to live, and is deleted only when a node is taken
    /// in.
    pub(super) fn counter(&self, resource: &ResourceName) -> String {
        format!("{}counter:{}", self.base, resource.as_str())
    }

    /// The lease of a resource.
    pub(super) fn lease(&self, resource: &ResourceName) -> String {
        format!("{}lease:{}", self.base, resource.as_str())
    }

    /// The pattern of the leases of all resources.
    pub(super) fn leases(&self) -> String {
        format!("{}lease:*", self.base)
    }

    /// The resource of the key of a lease.
    pub(super) fn leased(&self, key: &str) -> Option<ResourceName> {
        let name = key.strip_prefix(&self.base)?.strip_prefix("lease:")?;
        ResourceName::new(name).ok()
    }

    /// The ended attempts and grants of an acquisition. The script that grants relies on the end of
    /// the name, which is the digest of the holder.
    pub(super) fn ended(&self, resource: &ResourceName, digest: &str) -> String {
        let (base, name) = (&self.base, resource.as_str());
        format!("{base}ended:{name}:{digest}")
    }

    /// The pattern of the counters of all resources.
    pub(super) fn counters(&self) -> String {
        // The prefix has no character with a meaning in a pattern.
        format!("{}counter:*", self.base)
    }

    /// The patterns of everything that is not the marker.
    pub(super) fn patterns(&self) -> [String; 3] {
        [
            self.counters(),
            self.leases(),
            format!("{}ended:*", self.base),
        ]
    }
}
