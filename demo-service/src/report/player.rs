//! A page that plays a recording without a server: it contains the pictures of all moments.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Scene, bare_picture, sentence};
use crate::events::{Act, Event, Recording};

/// The time between two pictures while nothing happens but the growth of bars.
const FRAME_MS: u64 = 250;

const PAGE: &str = include_str!("player/page.html");

/// The place of the recording in the page.
const PLAYS: &str = "/*recording*/null";

/// The page that plays the first run; `None` if nothing happens in it.
pub(crate) fn player(recording: &Recording) -> Option<String> {
    let first = recording.events.iter().map(|event| event.run).min()?;
    let run = recording.events.iter().filter(|event| event.run == first);
    let run: Vec<_> = run.cloned().collect();
    let acts: Vec<_> = Act::BOTH
        .iter()
        .filter_map(|act| played(*act, &run))
        .collect();
    // No text of the pictures can end the script.
    let acts = Value::from(acts).to_string().replace("</", "<\\/");
    Some(PAGE.replace(PLAYS, &acts))
}

/// An act with its pictures, each with the moment from which on it is shown. The last one shows the
/// end of the story.
fn played(act: Act, run: &[Event]) -> Option<Value> {
    let of_act = || run.iter().filter(|event| event.act == act);
    let whole = Scene::of_act(act, of_act(), None)?;
    let mut frames: Vec<(u64, String)> = Vec::new();
    for at_ms in moments(run) {
        let picture = Scene::of_act(act, of_act(), Some(at_ms)).map(|scene| bare_picture(&scene));
        let picture = picture.unwrap_or_default();
        if frames.last().is_none_or(|(_, last)| *last != picture) {
            frames.push((at_ms, picture));
        }
    }
    frames.push((end(run) + FRAME_MS, bare_picture(&whole)));
    Some(json!({
        "title": act.title(),
        "verdict": sentence(&whole),
        "good": !whole.lost_update(),
        "frames": frames,
    }))
}

/// The times of all events, and some between them.
fn moments(run: &[Event]) -> BTreeSet<u64> {
    let steps = (0..).map(|step| step * FRAME_MS);
    let times = run.iter().map(|event| event.at_ms);
    times
        .chain(steps.take_while(|at_ms| *at_ms < end(run)))
        .collect()
}

fn end(run: &[Event]) -> u64 {
    run.iter()
        .map(|event| event.at_ms)
        .max()
        .unwrap_or_default()
}
