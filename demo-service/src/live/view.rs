use serde::Serialize;

use super::studio::Studio;
use crate::{
    events::{Act, ClientName, Event, ExchangeId, Story, What},
    report::{self, Scene},
};

/// The state of a run that the page needs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct View {
    gateway: u32,
    run: u32,
    playing: bool,
    now_ms: u64,
    by_hand: bool,
    story: Story,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    acts: Vec<ActView>,
}

/// The texts of one act.
#[derive(Clone, Debug, Serialize)]
struct ActView {
    act: Act,
    title: &'static str,
    client_1: ClientState,
    /// Good or bad, and why; `None` while the act is being played.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    events: Vec<Told>,
}

#[derive(Clone, Debug, Serialize)]
struct Verdict {
    good: bool,
    sentence: String,
}

#[derive(Clone, Debug, Serialize)]
struct Told {
    at_ms: u64,
    lane: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<ExchangeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ClientState {
    /// The client has not begun, or has ended.
    Gone,
    Running,
    Stopped,
}

impl View {
    pub(super) fn of(studio: &Studio) -> Self {
        let status = studio.status();
        let (events, now_ms) = studio.record();
        let acts = Act::BOTH.map(|act| ActView::of(act, &events, status.playing));
        Self {
            gateway: studio.id(),
            run: status.run,
            playing: status.playing,
            now_ms,
            by_hand: status.settings.is_some_and(|settings| settings.by_hand),
            story: status
                .settings
                .map_or_else(Story::default, |settings| settings.story),
            failure: status.failure,
            acts: acts.into(),
        }
    }
}

impl ActView {
    fn of(act: Act, events: &[Event], playing: bool) -> Self {
        let events: Vec<_> = events.iter().filter(|event| event.act == act).collect();
        let told = events.iter().filter(|event| !event.is_behind_the_scenes());
        let verdict = Scene::of_act(act, events.iter().copied(), None)
            .filter(Scene::has_verdict)
            .map(|scene| Verdict {
                good: !scene.lost_update(),
                sentence: report::sentence(&scene),
            });
        Self {
            act,
            title: act.title(),
            client_1: state_of_client_1(&events, playing && verdict.is_none()),
            verdict,
            events: told
                .map(|event| Told {
                    at_ms: event.at_ms,
                    lane: event.lane.to_string(),
                    text: event.to_string(),
                    exchange: event.exchange,
                })
                .collect(),
        }
    }
}

fn state_of_client_1(events: &[&Event], playing: bool) -> ClientState {
    let own = events
        .iter()
        .filter(|event| event.client == Some(ClientName::One));
    let is_gone = !playing || own.clone().count() == 0;
    // Other clients may change its lease while it is stopped.
    let last = own.rev().find_map(|event| match event.what {
        What::Paused { .. } => Some(ClientState::Stopped),
        What::Resumed { .. } => Some(ClientState::Running),
        What::Killed { .. } => Some(ClientState::Gone),
        _ => None,
    });
    match is_gone {
        true => ClientState::Gone,
        false => last.unwrap_or(ClientState::Running),
    }
}
