use lock_core::{ResourceName, backend::support::PREFIX};

/// The names of the leases of one prefix: `PREFIX RESOURCE`, or the resource alone for the default
/// prefix, so that callers from SQL need not know of it. No resource has a space in its name.
#[derive(Debug)]
pub(super) struct Names {
    /// Empty, or a prefix and a space.
    before: String,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        let before = match prefix {
            PREFIX => String::new(),
            prefix => format!("{prefix} "),
        };
        Self { before }
    }

    pub(super) fn complete(&self, resource: &mut String) {
        resource.insert_str(0, &self.before);
    }

    pub(super) fn of(&self, resource: &ResourceName) -> String {
        format!("{}{resource}", self.before)
    }

    /// The resource of a lease, if its prefix is this one.
    pub(super) fn resource_of<'a>(&self, lease: &'a str) -> Option<&'a str> {
        let resource = lease.strip_prefix(&self.before)?;
        (!resource.contains(' ')).then_some(resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_one_of_its_own_prefix_alone() {
        let (plain, jobs) = (Names::new("palisade"), Names::new("jobs"));
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
