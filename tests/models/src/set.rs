use std::fmt;

/// A set of small numbers: acquisitions, attempts, clients, tasks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Set(u16);

impl Set {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn of(member: usize) -> Self {
        Self(1 << member)
    }

    pub(crate) const fn all_below(end: usize) -> Self {
        Self((1 << end) - 1)
    }

    pub(crate) const fn contains(self, member: usize) -> bool {
        self.0 & (1 << member) != 0
    }

    pub(crate) const fn contains_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> u8 {
        self.members().map(|_| 1).sum()
    }

    pub(crate) const fn insert(&mut self, member: usize) {
        self.0 |= 1 << member;
    }

    pub(crate) const fn remove(&mut self, member: usize) {
        self.0 &= !(1 << member);
    }

    pub(crate) const fn include(&mut self, others: Self) {
        self.0 |= others.0;
    }

    pub(crate) fn members(self) -> impl Iterator<Item = usize> {
        (0..16).filter(move |member| self.contains(*member))
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Self {
        let mut set = Self::EMPTY;
        members.into_iter().for_each(|member| set.insert(member));
        set
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members()).finish()
    }
}
