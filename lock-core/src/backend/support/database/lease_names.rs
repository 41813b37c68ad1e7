use crate::{ResourceName, backend::support::PREFIX};

/// The names of the leases of one prefix in a database: `PREFIX RESOURCE`, or the resource alone
/// for the default prefix, so that callers from SQL need not know of a prefix. No resource has a
/// space in its name.
#[derive(Debug)]
pub struct LeaseNames {
    /// Empty, or a prefix and a space.
    before: String,
}

impl LeaseNames {
    /// The names of this prefix.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let before = match prefix {
            PREFIX => String::new(),
            prefix => format!("{prefix} "),
        };
        Self { before }
    }

    /// The name of the lease of a resource.
    #[must_use]
    pub fn of(&self, resource: &ResourceName) -> String {
        format!("{}{resource}", self.before)
    }

    /// The resource of a lease, if its prefix is this one.
    #[must_use]
    pub fn resource_of<'a>(&self, lease: &'a str) -> Option<&'a str> {
        let resource = lease.strip_prefix(&self.before)?;
        (!resource.contains(' ')).then_some(resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_one_of_its_own_prefix_alone() {
        let (plain, jobs) = (LeaseNames::new("palisade"), LeaseNames::new("jobs"));
        let resource = ResourceName::new("account:42").unwrap();
        assert_eq!(plain.of(&resource), "account:42");
        assert_eq!(jobs.of(&resource), "jobs account:42");
        for (names, lease, shown) in [
            (&plain, "account:42", Some("account:42")),
            (&plain, "jobs account:42", None),
            (&jobs, "jobs account:42", Some("account:42")),
            (&jobs, "account:42", None),
            (&jobs, "job account:42", None),
        ] {
            assert_eq!(names.resource_of(lease), shown, "{lease}");
        }
    }
}
