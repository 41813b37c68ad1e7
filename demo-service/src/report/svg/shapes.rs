//! The few shapes of which a picture consists.

use svg::node::element::{Circle, Group, Line, Path, Polygon, Rectangle, Text};

use crate::events::ClientName;

/// How a text is aligned to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The sign inside a dot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Glyph {
    Check,
    Cross,
    Bang,
}

/// The class that gives a group the colours of a client.
pub(super) const fn colours(client: ClientName) -> &'static str {
    match client {
        ClientName::One => "one",
        ClientName::Two => "two",
    }
}

pub(super) fn text(x: f64, y: f64, anchor: Anchor, class: &str, content: &str) -> Text {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    Text::new(content)
        .set("x", round(x))
        .set("y", round(y))
        .set("text-anchor", anchor)
        .set("class", class)
}

/// The approximate width of a text of the small size, measured in one of the wider usual fonts.
pub(super) fn text_width(content: &str) -> f64 {
    let width = |c: char| match c {
        '0'..='9' => 7.7,
        '…' => 12.0,
        _ => 6.2,
    };
    content.chars().map(width).sum()
}

pub(super) fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Line {
    Line::new()
        .set("x1", round(from.0))
        .set("y1", round(from.1))
        .set("x2", round(to.0))
        .set("y2", round(to.1))
        .set("class", class)
}

/// A rectangle around a middle line.
pub(super) fn bar(from_x: f64, to_x: f64, y: f64, half: f64, class: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(from_x))
        .set("y", round(y - half))
        .set("width", round(f64::max(2.0, to_x - from_x)))
        .set("height", round(half * 2.0))
        .set("rx", 4)
        .set("class", class)
}

/// An upright arrow.
pub(super) fn arrow(x: f64, from_y: f64, to_y: f64, class: &str) -> Group {
    const HEAD: f64 = 7.0;
    let back = if to_y > from_y {
        to_y - HEAD
    } else {
        to_y + HEAD
    };
    let (x, to_y) = (round(x), round(to_y));
    let points = format!(
        "{x},{to_y} {},{back} {},{back}",
        round(x - 4.0),
        round(x + 4.0)
    );
    Group::new()
        .add(line((x, from_y), (x, back), &format!("arrow {class}")))
        .add(Polygon::new().set("points", points).set("class", "head"))
}

/// A dot with a glyph in it. The glyph is drawn, not written, so that no font is needed.
pub(super) fn dot(x: f64, y: f64, class: &str, glyph: Glyph) -> Group {
    let strokes = match glyph {
        Glyph::Check => "M -4 0 l 3 3 l 5 -6",
        Glyph::Cross => "M -3.5 -3.5 l 7 7 M -3.5 3.5 l 7 -7",
        Glyph::Bang => "M 0 -5 l 0 6 M 0 4.5 l 0 0.1",
    };
    Group::new()
        .set("transform", format!("translate({} {})", round(x), round(y)))
        .add(Circle::new().set("r", 9).set("class", class))
        .add(Path::new().set("d", strokes).set("class", "glyph"))
}

/// Rounds to one decimal, which is far below a pixel, and keeps the file small.
pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
