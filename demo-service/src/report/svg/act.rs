use svg::node::element::{Definitions, Group, Path};

use super::{
    WIDTH, access, lanes,
    layout::{CLIENT_1, CLIENT_2, LOCK, STORAGE},
    shapes::{Anchor, Glyph, bar, dot, round, text},
    time_axis::TimeAxis,
};
use crate::{
    events::{Act, ClientName},
    report::{
        scene::{Scene, Verdict, short},
        sentence::sentence,
    },
};

/// Room for the heading above the lanes.
const HEADING: f64 = 36.0;

/// Height of the lane with the high-water mark.
const MARKS: f64 = 46.0;

/// A drawn act, and its height.
pub(super) struct Drawn {
    pub(super) group: Group,
    pub(super) height: f64,
}

/// Draws an act this many units below the top of the picture.
pub(super) fn draw(scene: &Scene, top: f64, is_bare: bool) -> Drawn {
    // Without a heading everything moves up into its place.
    let headroom = if is_bare { HEADING } else { 0.0 };
    let axis = TimeAxis::new(scene.length_ms);
    let hatch = format!("hatch-{}", scene.act);
    let (accesses, rows) = access::draw(scene, axis);
    let mut y = STORAGE + 26.0 + access::ROW * rows as f64;
    let mut group = Group::new()
        .set(
            "transform",
            format!("translate(0 {})", round(top - headroom)),
        )
        .add(Definitions::new().add(lanes::hatch(&hatch)))
        .add(axis.lane(CLIENT_1, scene.name(ClientName::One)))
        .add(axis.lane(LOCK, "lock service"))
        .add(axis.lane(CLIENT_2, scene.name(ClientName::Two)))
        .add(axis.lane(STORAGE, "storage"))
        .add(lanes::clients(scene, axis, &hatch))
        .add(lanes::leases(scene, axis))
        .add(accesses);
    if !is_bare {
        let title = scene.title();
        group = group.add(text(16.0, 34.0, Anchor::Start, "heading", title));
    }
    if scene.act == Act::Fenced {
        group = group.add(marks(scene, axis, y + MARKS - 16.0));
        y += MARKS;
    }
    group = group.add(axis.ticks(y));
    y += 34.0;
    if !is_bare && let Some(verdict) = &scene.verdict {
        group = group.add(banner(scene, verdict, y + 20.0));
        y += 40.0;
    }
    Drawn {
        group,
        height: y + 20.0 - headroom,
    }
}

/// The high-water mark: a step up with each claim.
fn marks(scene: &Scene, axis: TimeAxis, y: f64) -> Group {
    const STEP: f64 = 6.0;
    let mut group = Group::new().add(text(16.0, y, Anchor::Start, "lane", "high-water mark"));
    let mut line = String::new();
    let mut level = y;
    for (at_ms, token) in &scene.high_water {
        let x = round(axis.x(*at_ms));
        line += &match line.is_empty() {
            true => format!("M {x} {level}"),
            false => format!(" H {x} V {}", level - STEP),
        };
        level -= if line.contains('H') { STEP } else { 0.0 };
        let words = short(*token);
        group = group.add(text(
            x + 6.0,
            level - 6.0,
            Anchor::Start,
            "small strong",
            &words,
        ));
    }
    if !line.is_empty() {
        line += &format!(" H {}", round(axis.x(scene.length_ms)));
        group = group.add(Path::new().set("d", line).set("class", "mark"));
    }
    group
}

fn banner(scene: &Scene, verdict: &Verdict, y: f64) -> Group {
    let words = sentence(scene);
    let (class, text_class, dot_class, glyph) = match verdict.lost_update {
        true => ("bad-box", "strong bad-text", "bad-dot", Glyph::Cross),
        false => ("good-box", "strong good-text", "good-dot", Glyph::Check),
    };
    Group::new()
        .add(bar(16.0, WIDTH - 16.0, y, 19.0, class))
        .add(dot(38.0, y, dot_class, glyph))
        .add(text(56.0, y + 4.5, Anchor::Start, text_class, &words))
}
