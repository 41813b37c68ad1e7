//! Horizontal bars, as SVG.

use svg::{
    Document,
    node::element::{Rectangle, Text, Title},
};

/// A bar of one or two parts, in the unit of the picture.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) parts: Vec<f64>,
    pub(super) is_ours: bool,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const LINE: f64 = 26.0;
const TOP: f64 = 56.0;

/// The colours of the first and the second part of a bar, for other libraries and for ours.
const COLOURS: [[&str; 2]; 2] = [["#8a94a6", "#cbd2dd"], ["#2563eb", "#93b4f5"]];

/// The note says whether shorter is better.
pub(super) fn bars(title: &str, note: &str, bars: &[Bar]) -> String {
    let longest = bars.iter().map(Bar::sum).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LEFT - RIGHT) / longest;
    let mut top = TOP;
    let mut nodes: Vec<Box<dyn svg::Node>> = Vec::new();
    for bar in bars {
        let middle = top + LINE / 2.0 + 3.0;
        let label = text(&bar.label, LEFT - 8.0, middle).set("text-anchor", "end");
        nodes.push(Box::new(label));
        let mut left = LEFT;
        for (part, colour) in bar.parts.iter().zip(COLOURS[usize::from(bar.is_ours)]) {
            let width = (part * scale).round();
            nodes.push(Box::new(rectangle(left, top, width, LINE - 6.0, colour)));
            left += width;
        }
        nodes.push(Box::new(text(&number(bar.sum()), left + 6.0, middle)));
        top += LINE;
    }
    let height = top + 12.0;
    let document = Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("font-family", "system-ui, sans-serif")
        .set("font-size", 13)
        .set("fill", "#1f2937")
        .set("role", "img")
        .add(Title::new(title))
        .add(rectangle(0.0, 0.0, WIDTH, height, "#fff"))
        .add(text(title, 12.0, 22.0).set("font-weight", 600))
        .add(text(note, 12.0, 42.0).set("fill", "#5b6472"));
    nodes.into_iter().fold(document, Document::add).to_string() + "\n"
}

impl Bar {
    fn sum(&self) -> f64 {
        self.parts.iter().sum()
    }
}

fn text(words: &str, x: f64, y: f64) -> Text {
    Text::new(words).set("x", x).set("y", y)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", x)
        .set("y", y)
        .set("width", width)
        .set("height", height)
        .set("fill", colour)
}

/// The number with commas between thousands, and only with significant digits.
pub(super) fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(number(2.34), "2.3");
        assert_eq!(number(999.6), "1,000");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(123.0), "123");
    }
}
