//! Who stands in line for a resource, by the names of the nodes.

use crate::AttemptId;

/// Between the identity of a contender and its number: Curator's name, and kazoo's.
const MARKS: [&str; 2] = ["lock-", "__lock__"];

/// What a server appends to the name of a sequential node.
const DIGITS: usize = 10;

/// The identity of one attempt to stand in line, before the server has numbered it.
///
/// Curator's form, `_c_UUID-lock-`. The UUID is the attempt and a number drawn for each creation,
/// so a creation whose answer was lost is found again, and taken for no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity(String);

impl Identity {
    pub(super) fn fresh(attempt: AttemptId) -> Self {
        let uuid = format!("{attempt}{:016x}", rand::random::<u64>());
        let (first, rest) = uuid.split_at(8);
        let (second, rest) = rest.split_at(4);
        let (third, rest) = rest.split_at(4);
        let (fourth, fifth) = rest.split_at(4);
        Self(format!(
            "_c_{first}-{second}-{third}-{fourth}-{fifth}-lock-"
        ))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The node with this identity among those of the line.
    pub(super) fn find<'a>(&self, nodes: &'a [String]) -> Option<&'a String> {
        nodes.iter().find(|node| node.starts_with(&self.0))
    }
}

/// The contenders for one resource, whoever they are, first come first.
#[derive(Debug)]
pub(super) struct Line(Vec<String>);

impl Line {
    /// Puts the nodes of a lock directory in order. What is no contender is left out.
    pub(super) fn new(nodes: Vec<String>) -> Self {
        let numbered = nodes
            .into_iter()
            .filter_map(|node| Some((number(&node)?, node)));
        let mut numbered: Vec<_> = numbered.collect();
        // Numbers wrap around at 2^31. Those of one line are close together, so that one is before
        // another if the way up to it is the shorter one.
        let Some((base, _)) = numbered.first() else {
            return Self(Vec::new());
        };
        let base = *base;
        numbered.sort_by_key(|(number, _)| number.wrapping_sub(base));
        Self(numbered.into_iter().map(|(_, node)| node).collect())
    }

    pub(super) fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many are before this node, and the one right before it. `None`: it is not in line.
    pub(super) fn before(&self, node: &str) -> Option<(usize, Option<&str>)> {
        let place = self.0.iter().position(|other| other == node)?;
        let next = place.checked_sub(1).map(|index| self.0[index].as_str());
        Some((place, next))
    }
}

/// The number that the server gave to a contender.
fn number(node: &str) -> Option<i32> {
    let (name, digits) = node.split_at_checked(node.len().checked_sub(DIGITS)?)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude: i64 = digits.parse().ok()?;
    let is_marked = |name: &str| MARKS.iter().any(|mark| name.ends_with(mark));
    if let Some(name) = name.strip_suffix('-')
        && is_marked(name)
    {
        return i32::try_from(-magnitude).ok();
    }
    is_marked(name).then(|| i32::try_from(magnitude).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttemptRef, Holder, ResourceName};

    fn line(nodes: &[&str]) -> Vec<String> {
        Line::new(nodes.iter().copied().map(String::from).collect()).0
    }

    #[test]
    fn contenders_of_curator_kazoo_and_ours_stand_in_one_line() {
        let curators = "_c_0a4d3c3e-8d0b-4a76-9e0f-3f6c3c1f8d7a-lock-0000000012";
        let kazoos = "0a4d3c3e8d0b4a769e0f3f6c3c1f8d7a__lock__0000000003";
        let plain = "lock-0000000007";
        let attempt = AttemptRef::new(ResourceName::new("r").unwrap(), Holder::random());
        let ours = format!("{}0000000005", Identity::fresh(attempt.id).as_str());
        assert_eq!(
            line(&[
                curators,
                &ours,
                kazoos,
                plain,
                "notes",
                "lock-1",
                "x0000000001"
            ]),
            [kazoos, &ours, plain, curators]
        );
    }

    #[test]
    fn a_line_goes_on_when_the_numbers_wrap_around() {
        let [last, first, second] = ["2147483647", "-2147483648", "-2147483647"]
            .map(|number| format!("_c_u-lock-{number}"));
        assert_eq!(
            line(&[&second, &last, &first]),
            [last.clone(), first.clone(), second]
        );
        let kazoos = "u__lock__-2147483648";
        assert_eq!(line(&[kazoos, &last]), [last.as_str(), kazoos]);
    }

    #[test]
    fn an_identity_has_curators_form_and_is_never_drawn_twice() {
        let attempt = AttemptRef::new(ResourceName::new("r").unwrap(), Holder::random());
        let [one, two] = [0, 1].map(|_| Identity::fresh(attempt.id));
        assert_ne!(one, two);
        let uuid = one.as_str().strip_prefix("_c_").unwrap();
        let parts: Vec<_> = uuid.strip_suffix("-lock-").unwrap().split('-').collect();
        assert_eq!(
            parts.iter().map(|part| part.len()).collect::<Vec<_>>(),
            [8, 4, 4, 4, 12]
        );
        let nodes = [format!("{}0000000001", two.as_str())];
        assert_eq!(one.find(&nodes), None);
        assert_eq!(two.find(&nodes), Some(&nodes[0]));
    }
}
