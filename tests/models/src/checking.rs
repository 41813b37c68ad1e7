//! Running a model: either nothing is wrong with it, or here is the shortest way to what is.

use std::{collections::BTreeSet, fmt::Debug, hash::Hash, time::Instant};

use stateright::{Checker, HasDiscoveries, Model};

/// Looks at every state.
///
/// # Panics
/// If an `always` property does not hold in one of them, or a `sometimes` property in none.
pub fn assert_holds<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let started = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    println!(
        "{name}: {} states, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.max_depth(),
        started.elapsed().as_secs_f64(),
    );
    checker.assert_properties();
}

/// Finds the shortest story that breaks the property of this name, and prints it.
///
/// # Panics
/// If there is none.
pub fn assert_breaks<M>(name: &str, property: &'static str, model: M)
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let mut story = breaking_story(&model, property, usize::MAX)
        .unwrap_or_else(|| panic!("{name}: nothing breaks \"{property}\""));
    // The checker stops soon after the first story, and keeps the last one that it came across.
    while let Some(shorter) = breaking_story(&model, property, story.len() + 1) {
        story = shorter;
    }
    println!("{name} breaks \"{property}\" in {} steps:", story.len());
    for step in &story {
        println!("  {step:?}");
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
