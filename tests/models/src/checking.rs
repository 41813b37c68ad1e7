//! Running a model. A run either finds no fault, or shows a story: the steps that lead to a fault.
//!
//! A model is searched breadth first, up to 300 000 states. With `PALISADE_MODELS=whole`, as in
//! `scripts/test --deep`, every state is looked at, and the story of a fault is the shortest.
#![forbid(unsafe_code)]

use std::{collections::BTreeSet, env, fmt::Debug, hash::Hash, time::Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// So many states take about two seconds. The largest models have millions.
const STATES_AT_MOST: usize = 300_000;

fn is_whole() -> bool {
    env::var_os("PALISADE_MODELS").is_some_and(|bounds| bounds == "whole")
}

/// Checks every state, or as many as [the bound](self) allows.
///
/// # Panics
/// If an `always` property fails in any of these states. If all states were looked at, also if a
/// `sometimes` property holds in no state.
pub fn assert_holds<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let started = Instant::now();
    let bounded = if is_whole() {
        model.checker()
    } else {
        model.checker().target_state_count(STATES_AT_MOST)
    };
    let checker = bounded.spawn_bfs().join();
    let states = checker.unique_state_count();
    println!(
        "{name}: {states} states, depth {}, {:.1} s",
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
    );
    if is_whole() || checker.state_count() < STATES_AT_MOST {
        checker.assert_properties();
    } else {
        println!("{name}: there are more states; scripts/test --deep looks at all of them");
        for property in checker.model().properties() {
            if property.expectation == Expectation::Always {
                checker.assert_no_discovery(property.name);
            }
        }
    }
}

/// A protocol of which one rule can be left out.
pub trait Flawed: Model {
    /// The rules.
    type Flaw: Copy + Debug;

    /// The same protocol without this rule.
    #[must_use]
    fn with(self, flaw: Self::Flaw) -> Self;
}

/// Shows that rules are needed: without each of them, this property of this model breaks.
///
/// # Panics
/// If a property does not break without its rule.
pub fn assert_needed<M>(rules: impl IntoIterator<Item = (M::Flaw, &'static str, M)>)
where
    M: Flawed + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    for (flaw, property, model) in rules {
        assert_breaks(&format!("{flaw:?}"), property, model.with(flaw));
    }
}

/// Finds a story that breaks the property of this name, and prints it. If all states are
/// [asked for](self), it is the shortest story.
///
/// # Panics
/// If there is no such story.
pub fn assert_breaks<M>(name: &str, property: &'static str, model: M)
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let mut story = breaking_story(&model, property, usize::MAX)
        .unwrap_or_else(|| panic!("{name}: nothing breaks \"{property}\""));
    // The checker stops soon after the first story, and keeps the last story that it found.
    while is_whole()
        && let Some(shorter) = breaking_story(&model, property, story.len() + 1)
    {
        story = shorter;
    }
    println!("{name} breaks \"{property}\" in {} steps:", story.len());
    for step in &story {
        println!("  {step:?}");
    }
}

/// Checks every state, and finds that exactly the `always` properties of these names do not hold.
///
/// # Panics
/// If another property does not hold, one of these holds, or a `sometimes` property is not reached.
pub fn assert_breaks_only<M>(name: &str, broken: &[&'static str], model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        if let (Expectation::Always, Some(story)) = (&property.expectation, &found) {
            let story = story.clone().into_actions();
            println!("{name} breaks \"{}\": {story:?}", property.name);
        }
        let expected = match property.expectation {
            Expectation::Always => broken.contains(&property.name),
            _ => true,
        };
        let state = if expected { "is not found" } else { "is found" };
        assert_eq!(
            found.is_some(),
            expected,
            "{name}: \"{}\" {state}",
            property.name
        );
    }
}

/// A story that breaks the property and reaches fewer than `depth` states.
fn breaking_story<M>(model: &M, property: &'static str, depth: usize) -> Option<Vec<M::Action>>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model
        .clone()
        .checker()
        .target_max_depth(depth)
        .finish_when(HasDiscoveries::AnyOf(BTreeSet::from([property])))
        .spawn_bfs()
        .join();
    Some(checker.discovery(property)?.into_actions())
}

/// Plays a story step by step from some initial state, and finds that it breaks the property of
/// this name.
///
/// # Panics
/// If a step cannot happen, or the property holds in the end.
pub fn assert_story_breaks<M: Model>(name: &str, property: &'static str, model: &M, story: &[&str])
where
    M::Action: Debug,
{
    let breaks = |state: &M::State| !(model.property(property).condition)(model, state);
    let ends = told(model, story).into_iter().filter_map(Result::ok);
    assert!(
        ends.into_iter().any(|end| breaks(&end)),
        "{name}: \"{property}\" holds"
    );
    println!(
        "{name} breaks \"{property}\" in {} steps, as told",
        story.len()
    );
}

/// Plays a story step by step from each initial state, and finds that it gets exactly to this step.
///
/// # Panics
/// If it gets further.
pub fn assert_story_stops<M: Model>(name: &str, step: &str, model: &M, story: &[&str])
where
    M::Action: Debug,
{
    let last = story.iter().position(|one| *one == step);
    let mut reached = told(model, story).into_iter().map(Result::err);
    assert!(
        reached.all(|stop| stop.is_some() && stop <= last),
        "{name}: it goes on"
    );
}

/// For each initial state, the last state of a story, or the number of the step that cannot happen.
fn told<M: Model>(model: &M, story: &[&str]) -> Vec<Result<M::State, usize>>
where
    M::Action: Debug,
{
    let follow = |beginning: M::State| {
        let mut state = beginning;
        for (number, step) in story.iter().enumerate() {
            let mut possible = Vec::new();
            model.actions(&state, &mut possible);
            let mut possible = possible.into_iter();
            let action = possible.find(|action| format!("{action:?}") == *step);
            let next = action.and_then(|action| model.next_state(&state, action));
            state = next.ok_or(number)?;
        }
        Ok(state)
    };
    model.init_states().into_iter().map(follow).collect()
}
