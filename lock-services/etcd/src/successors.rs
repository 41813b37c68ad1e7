use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use tokio::sync::oneshot;

use super::{
    in_line::{Ahead, InLine},
    record::{Kept, Place},
    wire::{KeyValue, TxnResponse},
};
use lock_core::{Moment, support::lock};

/// Those of this process who may be next in line. Whoever releases a lease here tells the next one
/// that it is the first now, which spares that one a look.
///
/// The release has seen it in the same step, so it is what a look at that moment would have shown:
/// the place was there, nobody was before it, and nobody can come before it any more. Whoever is
/// told nothing hears of the deletion and looks.
#[derive(Debug, Default)]
pub(super) struct Successors {
    /// Every change of it is a single step.
    lines: Mutex<HashMap<Vec<u8>, Line>>,
}

/// A line in which somebody waits.
#[derive(Debug, Default)]
struct Line {
    waiters: Vec<Waiter>,
    /// How many releases are under way that will tell one of them.
    releases: usize,
}

#[derive(Debug)]
struct Waiter {
    key: Vec<u8>,
    created: i64,
    told: oneshot::Sender<Ahead>,
}

/// A release that tells the next one in line, while it is under way.
#[derive(Debug)]
pub(super) struct Release<'a> {
    successors: &'a Successors,
    line: &'a [u8],
}

/// What a waiter is told by. When it is dropped, the waiter is forgotten.
#[derive(Debug)]
pub(super) struct Herald<'a> {
    successors: &'a Successors,
    line: Vec<u8>,
    told: oneshot::Receiver<Ahead>,
}

impl Successors {
    /// Whoever waits with that place is told from now on, once.
    pub(super) fn wait(&self, line: &[u8], place: &InLine) -> Herald<'_> {
        let (sender, told) = oneshot::channel();
        let waiter = Waiter {
            key: place.key.clone(),
            created: place.created,
            told: sender,
        };
        let mut lines = self.lines();
        let waiters = &mut lines.entry(line.to_vec()).or_default().waiters;
        waiters.push(waiter);
        drop(lines);
        Herald {
            successors: self,
            line: line.to_vec(),
            told,
        }
    }

    /// A release begins. `None` if nobody of this process waits for it.
    pub(super) fn release<'a>(&'a self, line: &'a [u8]) -> Option<Release<'a>> {
        self.lines().get_mut(line)?.releases += 1;
        Some(Release {
            successors: self,
            line,
        })
    }

    /// Whether somebody may be told soon.
    pub(super) fn is_being_released(&self, line: &[u8]) -> bool {
        let lines = self.lines();
        lines.get(line).is_some_and(|line| line.releases > 0)
    }

    /// Tells the next one in line, if it is one of this process. `answer` is that to a release,
    /// which was sent after `asked` and has looked for the oldest place that is left.
    pub(super) fn tell_next(&self, line: &[u8], asked: Moment, answer: TxnResponse) {
        let (revision, term) = (answer.revision(), answer.term());
        if let Some(first) = answer.ranges().flat_map(|range| range.kvs).next() {
            let seen = Ahead {
                number: 0,
                last: None,
                least: Kept::<Place>::read(&first).value.least,
                asked,
                revision,
                term,
            };
            self.tell(line, &first, &seen);
        }
    }

    /// Tells those whose place this is; several attempts may rely on one.
    fn tell(&self, line: &[u8], first: &KeyValue, seen: &Ahead) {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(line) else {
            return;
        };
        let is_first = |it: &mut Waiter| it.key == first.key && it.created == first.create_revision;
        for waiter in line.waiters.extract_if(.., is_first) {
            // If it has gone away meanwhile, its place is given back by whoever cancels it.
            drop(waiter.told.send(seen.clone()));
        }
    }

    /// Changes a line that is there, and forgets it if nothing is left of it.
    fn change(&self, line: &[u8], change: impl FnOnce(&mut Line)) {
        let mut lines = self.lines();
        if let Some(present) = lines.get_mut(line) {
            change(present);
            if present.waiters.is_empty() && present.releases == 0 {
                lines.remove(line);
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Line>> {
        lock(&self.lines)
    }
}

impl Herald<'_> {
    /// Completes when it is told. After that it must not be asked again.
    pub(super) async fn told(&mut self) -> Ahead {
        match (&mut self.told).await {
            Ok(seen) => seen,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Herald<'_> {
    fn drop(&mut self) {
        self.told.close();
        self.successors.change(&self.line, |line| {
            line.waiters.retain(|waiter| !waiter.told.is_closed());
        });
    }
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.successors.change(self.line, |line| line.releases -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    const LINE: &[u8] = b"line/";

    fn place(key: &str, created: i64) -> InLine {
        InLine {
            key: key.into(),
            created,
            floor: 0,
        }
    }

    fn tell(successors: &Successors, key: &str, created: i64) {
        let first = KeyValue {
            key: key.into(),
            create_revision: created,
            ..KeyValue::default()
        };
        let seen = Ahead {
            number: 0,
            last: None,
            least: 7,
            asked: Moment::from_origin(Duration::ZERO),
            revision: 9,
            term: 1,
        };
        successors.tell(LINE, &first, &seen);
    }

    #[test]
    fn all_attempts_with_that_place_are_told_and_nobody_else() {
        let successors = Successors::default();
        let [mut one, mut other, mut next, mut former] = [
            successors.wait(LINE, &place("a", 3)),
            successors.wait(LINE, &place("a", 3)),
            successors.wait(LINE, &place("b", 4)),
            // A place of the same name that was made anew since.
            successors.wait(LINE, &place("a", 2)),
        ];
        tell(&successors, "a", 3);
        for told in [&mut one, &mut other] {
            let seen = told.told().now_or_never().expect("it is told");
            assert_eq!((seen.least, seen.revision), (7, 9));
        }
        for not in [&mut next, &mut former] {
            assert!(not.told().now_or_never().is_none());
        }
        assert!(
            successors
                .wait(b"other/", &place("a", 3))
                .told()
                .now_or_never()
                .is_none()
        );
    }

    #[test]
    fn whoever_has_gone_is_forgotten() {
        let successors = Successors::default();
        assert!(successors.release(LINE).is_none(), "nobody waits");
        let (one, mut other) = (
            successors.wait(LINE, &place("a", 3)),
            successors.wait(LINE, &place("b", 4)),
        );
        drop(one);
        let release = successors.release(LINE).expect("somebody waits");
        assert!(successors.is_being_released(LINE) && !successors.is_being_released(b"other/"));
        tell(&successors, "a", 3);
        assert!(other.told().now_or_never().is_none());
        tell(&successors, "b", 4);
        assert!(other.told().now_or_never().is_some());
        drop(other);
        drop(release);
        assert!(successors.lines().is_empty());
    }
}
