//! Draws lanes as in the figures of papers about locking: time runs to the right, and requests are
//! vertical arrows.
//!
//! The picture has its own background, and colours for light and dark, so it fits into any page. No
//! meaning depends on colour alone: every mark has a glyph and a text.

mod access;
mod act;
mod labels;
mod lanes;
mod layout;
mod shapes;
mod time_axis;

use svg::{
    Document,
    node::element::{Description, Rectangle, Style, Title},
};

use super::{Scene, scene::Verdict};
use crate::events::Story;

/// Width of every picture, in its own units; it scales.
const WIDTH: f64 = 960.0;

/// The picture of these acts, one below the other, as a document of its own.
pub(crate) fn picture(scenes: &[Scene]) -> String {
    document(scenes, false).to_string()
}

/// The picture of one act, to be kept as a file: it has a size of its own.
pub(crate) fn saved_picture(scene: &Scene) -> String {
    let document = document(std::slice::from_ref(scene), false);
    document.set("width", WIDTH).to_string()
}

/// The picture of one act, for a page that has a heading and the verdict above it.
pub(crate) fn bare_picture(scene: &Scene) -> String {
    document(std::slice::from_ref(scene), true).to_string()
}

/// A bare document has no title and no verdict of an act, because the page around it has them.
fn document(scenes: &[Scene], is_bare: bool) -> Document {
    let mut height = 0.0;
    let mut drawn = Vec::new();
    for scene in scenes {
        let act = act::draw(scene, height, is_bare);
        height += act.height;
        drawn.push(act.group);
    }
    let title = scenes
        .iter()
        .map(Scene::title)
        .collect::<Vec<_>>()
        .join("; ");
    let background = Rectangle::new().set("class", "bg").set("rx", 8);
    let document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("role", "img")
        .set(
            "font-family",
            "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif",
        )
        .add(Title::new(title))
        .add(Description::new().add(svg::node::Text::new(description(scenes))))
        .add(Style::new(include_str!("svg/style.css")))
        .add(background.set("width", WIDTH).set("height", height));
    drawn.into_iter().fold(document, Document::add)
}

/// A description of the picture, for readers who cannot see it.
fn description(scenes: &[Scene]) -> String {
    if let [
        Scene {
            heading: Some(heading),
            ..
        },
    ] = scenes
    {
        return format!("{}: {}", heading.title, heading.verdict);
    }
    let mut told = Vec::new();
    if let Some(scene) = scenes.first() {
        told.push(story(scene));
    }
    for scene in scenes {
        if let Some(verdict) = scene.verdict {
            let Verdict {
                expected, found, ..
            } = verdict;
            let title = scene.act.title();
            if scene.story == Story::Jobs {
                told.push(format!("{title}: the job is done {found} times."));
                continue;
            }
            let what = match verdict.lost_update {
                true => "an update is lost",
                false => "nothing is lost",
            };
            told.push(format!(
                "{title}: {what}, the balance is {found} and should be {expected}."
            ));
        }
    }
    told.join(" ")
}

/// The story of the clients, as far as the scene shows it.
fn story(scene: &Scene) -> String {
    let (does, late) = match scene.story {
        Story::Deposits => ("writes", "writes what it had computed before"),
        Story::Jobs => ("does the job", "does it, too"),
    };
    let middle = if !scene.kills.is_empty() {
        format!(
            "It is killed, its lease ends by itself, and client 2 acquires the next one and {does}."
        )
    } else if !scene.pauses.is_empty() {
        format!(
            "It is stopped past the end of its lease. Client 2 acquires the next lease and {does}. \
             Client 1 is resumed and {late}."
        )
    } else {
        "It works under it.".to_owned()
    };
    format!("Client 1 acquires a lease. {middle}")
}
