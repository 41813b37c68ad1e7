use super::{WIDTH, shapes::text_width};

/// The least space between two labels of a row.
const GAP: f64 = 5.0;

/// A label of one or two lines below a point.
#[derive(Clone, Debug)]
pub(super) struct Label {
    /// The point to which the label belongs.
    pub(super) at_x: f64,
    /// The middle of the label.
    pub(super) x: f64,
    /// Which row below the lane, from 0.
    pub(super) row: usize,
    pub(super) class: &'static str,
    pub(super) lines: Vec<String>,
}

/// Puts labels into rows so that no two of them touch and none is cut off at the edge.
#[derive(Debug, Default)]
pub(super) struct Labels {
    placed: Vec<Label>,
    /// The right end of the last label of each row.
    rows: Vec<f64>,
}

impl Labels {
    /// Places the next label; they come from left to right.
    pub(super) fn place(&mut self, at_x: f64, class: &'static str, lines: Vec<String>) {
        let half = lines
            .iter()
            .map(|line| text_width(line))
            .fold(0.0, f64::max)
            / 2.0;
        let x = at_x.clamp(GAP + half, WIDTH - GAP - half);
        let free = self.rows.iter().position(|end| end + GAP <= x - half);
        let row = free.unwrap_or(self.rows.len());
        match self.rows.get_mut(row) {
            Some(end) => *end = x + half,
            None => self.rows.push(x + half),
        }
        self.placed.push(Label {
            at_x,
            x,
            row,
            class,
            lines,
        });
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn into_placed(self) -> Vec<Label> {
        self.placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: texts that overlap, or that leave the picture.
    #[test]
    fn labels_that_would_touch_go_into_another_row_and_none_is_cut_off() {
        let mut labels = Labels::default();
        for x in [136.0, 140.0, 145.0, 400.0, 950.0] {
            labels.place(x, "small", vec!["writes 150".into()]);
        }
        assert_eq!(labels.rows(), 3);
        let rows: Vec<_> = labels.placed.iter().map(|label| label.row).collect();
        assert_eq!(rows, [0, 1, 2, 0, 0]);
        let last = labels.placed.last().unwrap();
        assert!(last.x + text_width("writes 150") / 2.0 <= WIDTH);
    }
}
