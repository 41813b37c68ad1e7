use std::collections::BTreeSet;

use super::Scene;
use crate::events::{Act, Recording};

/// The scenes of the run to draw: the first that did not go as expected, otherwise the first.
pub(crate) fn chosen(recording: &Recording) -> Vec<Scene> {
    let runs: BTreeSet<_> = recording.events.iter().map(|event| event.run).collect();
    let runs = runs.into_iter().map(|run| {
        let acts = Act::BOTH.map(|act| Scene::of(&recording.scene(run, act)));
        let headed = |scene: Scene| scene.with_heading(recording.schedule.as_ref());
        acts.into_iter().flatten().map(headed).collect::<Vec<_>>()
    });
    let mut runs: Vec<_> = runs.collect();
    let strange = runs
        .iter()
        .position(|scenes| !scenes.iter().all(Scene::as_told));
    match runs.is_empty() {
        true => Vec::new(),
        false => runs.swap_remove(strange.unwrap_or(0)),
    }
}
