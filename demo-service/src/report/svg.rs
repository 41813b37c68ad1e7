//! Swimlanes in the manner of the figures in papers on locking: time runs to the right, requests
//! go up and down.
//!
//! The picture brings its own background and colours for light and dark, so it can stand in any
//! page. Nothing is told by colour alone: every mark has a glyph and a text.

mod access;
mod act;
mod labels;
mod lanes;
mod shapes;
mod time_axis;

use svg::{
    Document,
    node::element::{Description, Rectangle, Style, Title},
};

use super::{Scene, scene::Verdict};

/// Width of every picture, in its own units; it scales.
const WIDTH: f64 = 960.0;

/// The picture of these acts, one below the other, as a document of its own.
pub(crate) fn picture(scenes: &[Scene]) -> String {
    document(scenes, Heading::Shown)
}

/// The picture of one act, for a page that has a heading above it.
pub(crate) fn inline_picture(scene: &Scene) -> String {
    document(std::slice::from_ref(scene), Heading::Elsewhere)
}

/// Whether the picture itself says which act it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Shown,
    Elsewhere,
}

fn document(scenes: &[Scene], heading: Heading) -> String {
    let mut height = 0.0;
    let mut drawn = Vec::new();
    for scene in scenes {
        let act = act::draw(scene, height, heading);
        height += act.height;
        drawn.push(act.group);
    }
    let title = scenes
        .iter()
        .map(|scene| scene.act.title())
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
    drawn.into_iter().fold(document, Document::add).to_string()
}

/// What the picture shows, for those who cannot see it.
fn description(scenes: &[Scene]) -> String {
    let verdicts = scenes.iter().filter_map(|scene| {
        let Verdict {
            expected,
            found,
            lost_update,
            ..
        } = scene.verdict?;
        let what = if lost_update {
            "an update is lost"
        } else {
            "nothing is lost"
        };
        let title = scene.act.title();
        Some(format!(
            "{title}: {what}, the balance is {found} and should be {expected}."
        ))
    });
    let story = "Client 1 acquires a lease and is stopped past its end. Client 2 acquires the next \
                 lease and writes. Client 1 is resumed and writes what it had computed before.";
    verdicts.fold(story.to_owned(), |text, verdict| {
        format!("{text} {verdict}")
    })
}
