use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    client::GatewayClient,
    events::{Act, Event, Exchange, ExchangeId, Recorder, Story},
    scenario::{Cue, Director, Hand},
};
use palisade_cli::Failure;
use palisade_gateway::wire::millis;

/// Plays the scenario when a visitor of the page asks for it, one run at a time.
///
/// Cloning is cheap; clones share one studio. The client processes end with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Studio {
    id: u32,
    gateway: String,
    recorder: Recorder,
    changes: watch::Sender<u64>,
    stage: Arc<Mutex<Stage>>,
}

/// The settings of a run.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) ttl_ms: u64,
    pub(super) pause_ms: u64,
    #[serde(default)]
    pub(super) story: Story,
    /// Whether the visitor, not the clock, stops and resumes client 1.
    #[serde(default)]
    pub(super) by_hand: bool,
}

/// The present run, or the last one.
#[derive(Debug, Default)]
struct Stage {
    run: u32,
    settings: Option<Settings>,
    /// One sender for each act that is being played.
    cues: Vec<mpsc::Sender<Cue>>,
    failure: Option<String>,
    acts: JoinSet<()>,
    playing: usize,
}

/// The state that the page shows besides the record.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) run: u32,
    pub(super) playing: bool,
    pub(super) settings: Option<Settings>,
    pub(super) failure: Option<String>,
}

impl Studio {
    /// A studio whose clients talk to the gateway at `url`, which has to record with
    /// [`recorder`](Self::recorder).
    pub(crate) fn new(url: String) -> Self {
        let changes = watch::Sender::new(0);
        let told = changes.clone();
        let recorder = Recorder::new(move |_| told.send_modify(|version| *version += 1));
        Self {
            id: rand::random(),
            gateway: url,
            recorder,
            changes,
            stage: Arc::default(),
        }
    }

    /// A number that distinguishes this studio from that of another gateway at the same address,
    /// whose runs have the same numbers.
    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// The URL of the gateway.
    pub(super) fn url(&self) -> &str {
        &self.gateway
    }

    /// The recorder that the gateway has to use.
    pub(crate) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// A counter that rises whenever there is something new.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Begins to play both acts at the same time. False if a run is in progress.
    ///
    /// # Errors
    /// If this machine cannot provide something that a run needs.
    pub(super) fn play(&self, settings: Settings) -> Result<bool, Failure> {
        let director = Arc::new(Director {
            gateway: self.gateway.clone(),
            client: GatewayClient::for_director(self.gateway.clone())?,
            recorder: self.recorder.clone(),
            ttl: Duration::from_millis(settings.ttl_ms),
            story: settings.story,
            nonce: rand::random(),
        });
        let mut stage = self.stage();
        if stage.playing > 0 {
            return Ok(false);
        }
        self.recorder.clear();
        let run = stage.run + 1;
        *stage = Stage {
            run,
            settings: Some(settings),
            playing: Act::BOTH.len(),
            ..Stage::default()
        };
        for act in Act::BOTH {
            let (cue, cues) = mpsc::channel(8);
            stage.cues.push(cue);
            let hand = match settings.by_hand {
                true => Hand::Visitor(cues),
                false => Hand::Clock(Duration::from_millis(settings.pause_ms)),
            };
            let (studio, director) = (self.clone(), Arc::clone(&director));
            let playing = async move {
                let mut playing = Playing {
                    studio,
                    result: Err(Failure::NotAsTold(
                        "the act was not played to its end".into(),
                    )),
                };
                playing.result = director.play(run, act, hand).await;
            };
            stage.acts.spawn(playing);
        }
        drop(stage);
        self.changed();
        Ok(true)
    }

    /// Passes the visitor's order to both acts. An order that is not possible at the moment is
    /// ignored.
    pub(super) fn cue(&self, cue: Cue) {
        for act in &self.stage().cues {
            // The channel is full only if a visitor clicks faster than anything happens.
            let _told = act.try_send(cue).is_ok();
        }
    }

    pub(super) fn status(&self) -> Status {
        let stage = self.stage();
        Status {
            run: stage.run,
            playing: stage.playing > 0,
            settings: stage.settings,
            failure: stage.failure.clone(),
        }
    }

    /// A request of the present run, or the last one.
    pub(super) fn exchange(&self, id: ExchangeId) -> Option<Exchange> {
        self.recorder.exchange(id)
    }

    /// The events of the run so far, with times from its start; and the present time.
    pub(super) fn record(&self) -> (Vec<Event>, u64) {
        let mut events = self.recorder.events();
        let start_ms = events.first().map_or(0, |event| event.at_ms);
        for event in &mut events {
            event.at_ms -= start_ms;
        }
        let now_ms = millis(self.recorder.elapsed()).saturating_sub(start_ms);
        (events, now_ms)
    }

    fn ended(&self, result: &Result<(), Failure>) {
        let mut stage = self.stage();
        stage.playing -= 1;
        if let Err(failure) = result {
            tracing::error!(%failure, "a run of the live page broke off");
            stage.failure = Some(failure.to_string());
        }
        drop(stage);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // The state is never half changed, so it is usable after a panic.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An act that is being played. It ends even if playing it panics.
struct Playing {
    studio: Studio,
    result: Result<(), Failure>,
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.studio.ended(&self.result);
    }
}
