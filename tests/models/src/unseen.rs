use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

/// A note in a state for readers of the story. States that differ only in such notes are equal.
#[derive(Clone, Copy)]
pub(crate) struct Unseen<T>(pub(crate) T);

impl<T> PartialEq for Unseen<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unseen<T> {}

impl<T> PartialOrd for Unseen<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Unseen<T> {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl<T> Hash for Unseen<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T: fmt::Debug> fmt::Debug for Unseen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
