//! Reads and writes on their way to the storage, and its answers.

use svg::node::element::{Circle, Group, Line};

use super::{
    labels::{Label, Labels},
    lanes::client_y,
    layout::STORAGE,
    shapes::{Anchor, Glyph, arrow, colours, dot, line, round, text},
    time_axis::TimeAxis,
};
use crate::{
    events::Story,
    report::scene::{Access, AccessKind, Scene, Span, Wrong, short},
};

/// The distance between two requests of the same moment.
const APART: f64 = 18.0;

/// Height of a row of labels with two lines each.
pub(super) const ROW: f64 = 34.0;

/// Arrows, dots and labels; and how many rows the labels take.
pub(super) fn draw(scene: &Scene, axis: TimeAxis) -> (Group, usize) {
    let mut group = Group::new();
    let mut labels = Labels::default();
    let mut free_x = 0.0;
    for access in &scene.accesses {
        let x = f64::max(free_x, place(scene, access, axis));
        free_x = x + APART;
        group = group.add(request(access, x, is_believed(scene, access)));
        let (class, lines) = label(scene.story, access);
        labels.place(x, class, lines);
    }
    let rows = labels.rows();
    let labels = labels.into_placed();
    // All lines are drawn before all texts, so that a text that crosses a line interrupts it.
    let group = labels.iter().filter_map(leader).fold(group, Group::add);
    (labels.iter().map(words).fold(group, Group::add), rows)
}

/// The place of the arrow. It is beside the arrow of the grant, if both would have the same place.
fn place(scene: &Scene, access: &Access, axis: TimeAxis) -> f64 {
    let own = |section: &&Span| section.client == access.client && section.from_ms <= access.at_ms;
    let section = scene.sections.iter().rfind(own);
    let grant_x = section.map_or(0.0, |section| axis.x(section.from_ms));
    let x = axis.x(access.at_ms);
    if x < grant_x + APART / 2.0 {
        grant_x + APART / 2.0
    } else {
        x
    }
}

/// Whether the client believes that it holds the lease. If so, its arrow begins at a bar.
fn is_believed(scene: &Scene, access: &Access) -> bool {
    let time = access.at_ms;
    let around = |section: &Span| (section.from_ms..=section.to_ms).contains(&time);
    let mut sections = scene.sections.iter();
    sections.any(|section| section.client == access.client && around(section))
}

fn request(access: &Access, x: f64, is_believed: bool) -> Group {
    let lane_y = client_y(access.client);
    let from_y = lane_y + if is_believed { 9.0 } else { 5.0 };
    let mut group = Group::new().set("class", colours(access.client));
    if let Some(exchange) = access.exchange {
        group = group.set("data-exchange", exchange);
    }
    if !is_believed {
        let spot = Circle::new().set("cx", round(x)).set("cy", lane_y);
        group = group.add(spot.set("r", 5).set("class", "dot"));
    }
    let write =
        |class, glyph| arrow(x, from_y, STORAGE - 9.0, "").add(dot(x, STORAGE, class, glyph));
    match access.kind {
        AccessKind::Read => {
            let spot = Circle::new()
                .set("cx", round(x))
                .set("cy", STORAGE)
                .set("r", 5);
            let arrow = arrow(x, from_y, STORAGE - 6.0, "read");
            group.add(arrow).add(spot.set("class", "dot"))
        }
        AccessKind::Accepted { wrong: None, .. } => group.add(write("good-dot", Glyph::Check)),
        AccessKind::Accepted { .. } => group.add(write("bad-dot", Glyph::Bang)),
        AccessKind::Refused { .. } => group.add(write("bad-dot", Glyph::Cross)),
    }
}

fn label(story: Story, access: &Access) -> (&'static str, Vec<String>) {
    let what = what(story, access);
    match access.kind {
        AccessKind::Read => ("small halo", vec![what]),
        AccessKind::Accepted {
            token,
            status,
            wrong,
        } => {
            let token = token.map(|token| format!(", token {}", short(token)));
            let answer = format!("{status}{}", token.unwrap_or_default());
            let class = match wrong {
                Some(_) => "small halo bad-text",
                None => "small halo good-text",
            };
            (class, vec![what, answer])
        }
        AccessKind::Refused {
            token,
            status,
            high_water,
        } => {
            let is_stale = token < high_water;
            let token = token.map(short).unwrap_or_default();
            let reason = match high_water {
                Some(mark) if is_stale => format!("{token} < {}", short(mark)),
                _ => token,
            };
            let what = format!("{what}: refused");
            (
                "small halo bad-text",
                vec![what, format!("{status}, {reason}")],
            )
        }
    }
}

/// A read or a write in a few words.
fn what(story: Story, access: &Access) -> String {
    let balance = access.balance;
    match (story, access.kind) {
        (Story::Deposits, AccessKind::Read) => format!("reads {balance}"),
        (Story::Deposits, kind) => match kind {
            AccessKind::Accepted {
                wrong: Some(Wrong { over: Some(before) }),
                ..
            } => format!("writes {balance} over {before}"),
            _ => format!("writes {balance}"),
        },
        (Story::Jobs, AccessKind::Read) if balance == 0 => "not done".to_owned(),
        (Story::Jobs, AccessKind::Read) => "is done".to_owned(),
        (Story::Jobs, AccessKind::Accepted { wrong: Some(_), .. }) => "does it again".to_owned(),
        (Story::Jobs, _) => "does it".to_owned(),
    }
}

fn leader(label: &Label) -> Option<Line> {
    let (from, to) = (
        (label.at_x, STORAGE + 10.0),
        (label.at_x, top(label) - 11.0),
    );
    (label.row > 0).then(|| line(from, to, "leader"))
}

fn words(label: &Label) -> Group {
    let line_y = |number: usize| top(label) + 14.0 * number as f64;
    let lines = label.lines.iter().enumerate();
    lines.fold(Group::new(), |group, (number, words)| {
        group.add(text(
            label.x,
            line_y(number),
            Anchor::Middle,
            label.class,
            words,
        ))
    })
}

fn top(label: &Label) -> f64 {
    STORAGE + 27.0 + ROW * label.row as f64
}
