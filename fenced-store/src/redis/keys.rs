use lock_core::ResourceName;

/// The keys of a resource. Both have its name in braces, so a cluster keeps them in one slot.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) mark: String,
    pub(super) value: String,
}

impl Keys {
    pub(super) fn of(prefix: &str, resource: &ResourceName) -> Self {
        let tag = without_braces(resource.as_str());
        Self {
            mark: format!("{prefix}:{{{tag}}}:mark"),
            value: format!("{prefix}:{{{tag}}}:value"),
        }
    }
}

/// Escapes braces: a cluster hashes what is between the first `{` and the next `}`, so there must
/// be no others.
pub(super) fn without_braces(text: &str) -> String {
    let escape = |c: char| match c {
        '%' => "%25".to_owned(),
        '{' => "%7B".to_owned(),
        '}' => "%7D".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_resources_have_different_keys_with_one_tag_each() {
        let names = ["a", "{a}", "a}b", "%7Ba%7D", "{", "}{", "a:mark", "%", "{}"];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let keys = Keys::of("fenced", &ResourceName::new(name).unwrap());
            for key in [keys.mark, keys.value] {
                let (_, rest) = key.split_once('{').unwrap();
                let (tag, kind) = rest.split_once('}').unwrap();
                assert!(!tag.is_empty() && !kind.contains(['{', '}']), "{key}");
                assert!(seen.insert(key));
            }
        }
    }
}
