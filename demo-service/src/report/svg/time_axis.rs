use svg::node::element::Group;

use super::shapes::{Anchor, line, text};

/// The places where time begins and ends in the picture.
const LEFT: f64 = 152.0;
const RIGHT: f64 = 896.0;

/// Converts milliseconds to positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeAxis {
    length_ms: u64,
}

impl TimeAxis {
    pub(super) fn new(length_ms: u64) -> Self {
        Self {
            length_ms: std::cmp::max(1, length_ms),
        }
    }

    pub(super) fn x(self, at_ms: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * at_ms as f64 / self.length_ms as f64
    }

    /// The line of a lane, over the whole width.
    pub(super) fn lane(self, y: f64, name: &str) -> Group {
        Group::new()
            .add(text(16.0, y + 4.5, Anchor::Start, "lane", name))
            .add(line((LEFT, y), (RIGHT, y), "rule"))
    }

    /// Ticks and numbers, at most about ten.
    pub(super) fn ticks(self, y: f64) -> Group {
        const STEPS_MS: [u64; 8] = [100, 200, 500, 1000, 2000, 5000, 10_000, 60_000];
        let few = |step_ms: &u64| self.length_ms / step_ms <= 9;
        let step_ms = STEPS_MS.into_iter().find(few).unwrap_or(self.length_ms / 9);
        let mut axis = Group::new().add(line((LEFT, y), (RIGHT, y), "rule"));
        for at_ms in (0..=self.length_ms / step_ms).map(|step| step * step_ms) {
            let x = self.x(at_ms);
            let label = format!("{} s", at_ms as f64 / 1000.0);
            axis = axis.add(line((x, y), (x, y + 5.0), "rule")).add(text(
                x,
                y + 19.0,
                Anchor::Middle,
                "small muted",
                &label,
            ));
        }
        axis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a record with a wrong time, whose picture would have too many ticks.
    #[test]
    fn there_are_about_ten_ticks_however_long_it_takes() {
        for length_ms in [0, 1, 99, 900, 12_345, 10_000_000, u64::MAX - 1, u64::MAX] {
            let axis = TimeAxis::new(length_ms).ticks(0.0).to_string();
            let ticks = axis.matches("<text").count();
            assert!((1..=11).contains(&ticks), "{length_ms} ms: {ticks}");
        }
    }
}
