use super::settings::invalid;
use crate::{Error, InvalidName, ResourceName};

/// The resources of one acquisition, in the order in which they were named, or the error of a name
/// that is not valid.
pub(super) type Named = Result<Vec<ResourceName>, InvalidName>;

pub(super) fn names<I>(resources: I) -> Named
where
    I: IntoIterator,
    I::Item: TryInto<ResourceName>,
    <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
{
    let names = resources.into_iter();
    names
        .map(|name| name.try_into().map_err(Into::into))
        .collect()
}

/// The resources sorted by name, at least one and each of them once.
pub(super) fn sorted(named: &[ResourceName]) -> Result<Vec<&ResourceName>, Error> {
    let mut sorted: Vec<_> = named.iter().collect();
    sorted.sort();
    if sorted.is_empty() {
        return Err(invalid("no resource is named"));
    }
    let mut neighbours = sorted.iter().zip(sorted.iter().skip(1));
    match neighbours.find(|(one, other)| one == other) {
        Some((twice, _)) => Err(invalid("the resource is named twice").on(twice)),
        None => Ok(sorted),
    }
}
