use tonic::Status;

use super::{
    acquire::{Ahead, InLine},
    client::Client,
    record::{Kept, Place},
    wire::{WatchRequest, WatchResponse, method},
};

/// Those before a place in line, as a watch tells of them.
///
/// If there are few, one watch tells of all of them and of the place itself, in the order of the
/// revisions. So when it has told that the last of them is gone, it has told of all that happened
/// to the place up to then: that it was there, and from which token on it is good enough. Nobody
/// can come to stand before it. So it is the first, and that does not take a look: a look at that
/// moment would have found the same.
#[derive(Debug)]
pub(super) struct Front {
    key: Vec<u8>,
    created: i64,
    /// As of the last look, or what the watch has told since. Without who is before it.
    seen: Ahead,
    /// Who is before it.
    before: Vec<Vec<u8>>,
    /// If there are many: the last of those that are not near.
    herald: Option<Vec<u8>>,
}

/// What has changed before a place in line.
#[derive(Debug)]
pub(super) enum Change {
    /// Nobody is before it any more, and it was there then.
    First(Ahead),
    /// It takes a look to know.
    Perhaps,
    /// This look shows it.
    Seen(Ahead),
    /// The wait is over.
    Over,
}

/// Up to so many before it a place is near: each change of the line is told to so many waiters.
pub(super) const NEAR: u8 = 4;
/// How many of those before it a look has to show.
pub(super) const SHOWN: i64 = 1 + NEAR as i64;

impl Front {
    pub(super) fn new(place: &InLine, seen: &Ahead) -> Self {
        Self {
            key: place.key.clone(),
            created: place.created,
            before: seen.before.clone(),
            herald: seen.before.get(usize::from(NEAR)).cloned(),
            seen: Ahead {
                number: 0,
                before: Vec::new(),
                ..*seen
            },
        }
    }

    /// Waits until something has changed, or may have.
    ///
    /// What happened after the look is told: the watch begins with the next revision. One that
    /// began with that of the look would be served from the history, 100 ms later.
    pub(super) async fn change(mut self, client: &Client) -> Result<Change, Status> {
        let mut watch = client.open(method::WATCH, self.request()).await?;
        loop {
            let answer = watch.message().await?;
            let answer = answer.ok_or_else(|| Status::unavailable("the watch has ended"))?;
            if let Some(change) = self.heard(answer) {
                return Ok(change);
            }
        }
    }

    fn request(&self) -> WatchRequest {
        let from = self.seen.revision + 1;
        if let Some(herald) = &self.herald {
            return WatchRequest::deletion(herald, from);
        }
        let all = || self.before.iter().chain([&self.key]);
        let (first, last) = (all().min(), all().max());
        WatchRequest::changes(first.unwrap_or(&self.key), last.unwrap_or(&self.key), from)
    }

    /// Takes note of what is told. Nothing: it goes on.
    fn heard(&mut self, answer: WatchResponse) -> Option<Change> {
        for event in &answer.events {
            let entry = event.entry.as_ref()?;
            if event.is_deletion() {
                if self.herald.is_some() || entry.key == self.key {
                    return Some(Change::Perhaps);
                }
                self.before.retain(|key| *key != entry.key);
            } else if entry.key == self.key {
                let own = Kept::<Place>::read(entry);
                if own.created != self.created {
                    return Some(Change::Perhaps);
                }
                self.seen.least = own.value.least;
            }
            self.seen.revision = entry.mod_revision;
        }
        if answer.canceled {
            return Some(Change::Perhaps);
        }
        self.before.is_empty().then(|| {
            Change::First(Ahead {
                before: Vec::new(),
                ..self.seen
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prost::Message;

    use super::{
        super::wire::{Event, KeyValue},
        *,
    };
    use crate::Moment;

    const OWN: i64 = 9;

    fn front(before: &[&str]) -> Front {
        let place = InLine {
            key: b"own".to_vec(),
            created: OWN,
            floor: 0,
            ahead: None,
        };
        let seen = Ahead {
            number: 0,
            before: before.iter().map(|key| key.as_bytes().to_vec()).collect(),
            least: 7,
            asked: Moment::from_origin(Duration::ZERO),
            revision: 10,
            term: 1,
        };
        Front::new(&place, &seen)
    }

    fn entry(key: &str, revision: i64) -> KeyValue {
        KeyValue {
            key: key.into(),
            mod_revision: revision,
            ..KeyValue::default()
        }
    }

    fn told(events: impl IntoIterator<Item = Event>) -> WatchResponse {
        WatchResponse {
            events: events.into_iter().collect(),
            ..WatchResponse::default()
        }
    }

    fn gone(key: &str, revision: i64) -> Event {
        Event::deletion(entry(key, revision))
    }

    #[test]
    fn it_is_the_first_when_all_of_them_are_gone_by_what_it_is_bound_to_then() {
        let mut front = front(&["b", "a"]);
        assert!(front.heard(told([])).is_none());
        assert!(
            front
                .heard(told([gone("b", 11), gone("other", 11)]))
                .is_none()
        );
        let bound = Place {
            least: 70,
            ..Place::default()
        };
        let own = KeyValue {
            create_revision: OWN,
            value: bound.encode_to_vec(),
            ..entry("own", 12)
        };
        assert!(front.heard(told([Event::put(own)])).is_none());
        match front.heard(told([gone("a", 13)])) {
            Some(Change::First(seen)) => assert_eq!((seen.least, seen.revision), (70, 13)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_place_that_is_gone_or_another_one_is_never_the_first() {
        let made_again = Event::put(KeyValue {
            create_revision: 11,
            ..entry("own", 11)
        });
        for own in [gone("own", 11), made_again] {
            // Even if both are told at once.
            let change = front(&["a"]).heard(told([own, gone("a", 11)]));
            assert!(matches!(change, Some(Change::Perhaps)), "{change:?}");
        }
        let mut ended = told([gone("a", 11)]);
        ended.canceled = true;
        let change = front(&["a"]).heard(ended);
        assert!(matches!(change, Some(Change::Perhaps)), "{change:?}");
    }

    #[test]
    fn behind_many_it_takes_a_look_when_it_comes_near() {
        let before: Vec<_> = (0..=NEAR).map(|number| number.to_string()).collect();
        let before: Vec<_> = before.iter().map(String::as_str).collect();
        let herald = before[usize::from(NEAR)];
        let change = front(&before).heard(told([gone(herald, 11)]));
        assert!(matches!(change, Some(Change::Perhaps)), "{change:?}");
    }
}
