use anstyle::{AnsiColor, Style};

use super::{
    scene::{AccessKind, Scene, Span, short},
    sentence::sentence,
};
use crate::{
    events::{Act, ClientName},
    report::palette::{BAD, DIM, GOOD, HEADING, PAUSE},
};

/// Columns of the time line; with the names of the lanes it fits into 80.
const WIDTH: usize = 60;

/// Columns of the names.
const NAMES: usize = 15;

/// The meaning of the marks, lane by lane.
const LEGEND: [(&str, &str); 3] = [
    (
        "clients",
        "┄ waits   ━ believes that it has the lock   ▒ is stopped",
    ),
    ("lock service", "[33···] a lease and its token   × expired"),
    (
        "storage",
        "r read   write: ✓ taken   ! taken though stale   ✗ refused",
    ),
];

/// The meaning of the marks, below the time lines.
pub(crate) fn legend() -> String {
    let lines = LEGEND.map(|(name, marks)| format!("{DIM}{name:>NAMES$} {marks}{DIM:#}\n"));
    lines.concat()
}

/// One act, drawn in characters.
pub(crate) fn timeline(scene: &Scene) -> String {
    let mut lanes = vec![
        ("", ticks(scene)),
        ("client 1", client(scene, ClientName::One)),
        ("lock service", leases(scene)),
        ("client 2", client(scene, ClientName::Two)),
        ("storage", accesses(scene)),
    ];
    if scene.act == Act::Fenced {
        lanes.push(("high-water mark", marks(scene)));
    }
    let heading = scene.act.title();
    let mut text = format!("{HEADING}{heading}{HEADING:#}\n");
    for (name, lane) in lanes {
        text.push_str(&format!("{DIM}{name:>NAMES$}{DIM:#} {}\n", lane.painted()));
    }
    text
}

/// The verdict on one act.
pub(crate) fn verdict(scene: &Scene) -> String {
    let (style, glyph) = match scene.verdict {
        Some(verdict) if !verdict.lost_update => (GOOD, '✓'),
        _ => (BAD, '✗'),
    };
    format!(
        "{style}{glyph} {}.{style:#} {}",
        scene.act.title(),
        sentence(scene)
    )
}

/// One lane of characters.
struct Lane {
    cells: Vec<char>,
    length_ms: u64,
}

impl Lane {
    fn new(scene: &Scene) -> Self {
        Self {
            cells: vec![' '; WIDTH],
            length_ms: std::cmp::max(1, scene.length_ms),
        }
    }

    fn column(&self, at_ms: u64) -> usize {
        let column = at_ms.saturating_mul(WIDTH as u64 - 1) / self.length_ms;
        std::cmp::min(usize::try_from(column).unwrap_or(WIDTH), WIDTH - 1)
    }

    fn fill(&mut self, span: Span, with: char) {
        let columns = self.column(span.from_ms)..=self.column(span.to_ms);
        self.cells[columns].fill(with);
    }

    fn set(&mut self, at_ms: u64, to: char) {
        let column = self.column(at_ms);
        self.cells[column] = to;
    }

    /// Sets the outcome of a write. If the column has the outcome of another write, the new one
    /// comes after it.
    fn set_write(&mut self, at_ms: u64, to: char) {
        let from = self.column(at_ms);
        let free = |column: &usize| !WRITES.contains(&self.cells[*column]);
        let mut columns = (from..WIDTH).chain((0..from).rev());
        let column = columns.find(free).unwrap_or(from);
        self.cells[column] = to;
    }

    /// Writes a word so that it ends inside the lane; existing characters are overwritten.
    fn write(&mut self, column: usize, word: &str) {
        let from = std::cmp::min(column, WIDTH.saturating_sub(word.chars().count()));
        for (cell, letter) in self.cells[from..].iter_mut().zip(word.chars()) {
            *cell = letter;
        }
    }

    fn painted(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            match style(*cell) {
                Some(style) => text.push_str(&format!("{style}{cell}{style:#}")),
                None => text.push(*cell),
            }
        }
        text.trim_end().to_owned()
    }
}

fn style(cell: char) -> Option<Style> {
    match cell {
        '✓' => Some(GOOD),
        '✗' | '!' | '×' => Some(BAD),
        '▒' => Some(PAUSE),
        '┄' | '·' => Some(DIM),
        '━' => Some(AnsiColor::Blue.on_default()),
        _ => None,
    }
}

fn ticks(scene: &Scene) -> Lane {
    let mut lane = Lane::new(scene);
    let step_ms = std::cmp::max(1000, scene.length_ms / 5 / 1000 * 1000);
    for at_ms in (0..=scene.length_ms).step_by(usize::try_from(step_ms).unwrap_or(1000)) {
        lane.write(lane.column(at_ms), &format!("{} s", at_ms / 1000));
    }
    lane
}

fn client(scene: &Scene, client: ClientName) -> Lane {
    let mut lane = Lane::new(scene);
    let own = |span: &&Span| span.client == client;
    scene
        .waits
        .iter()
        .filter(own)
        .for_each(|span| lane.fill(*span, '┄'));
    scene
        .sections
        .iter()
        .filter(own)
        .for_each(|span| lane.fill(*span, '━'));
    for pause in scene.pauses.iter().filter(own) {
        lane.fill(*pause, '▒');
        let columns = lane.column(pause.to_ms) - lane.column(pause.from_ms);
        let word = " SIGSTOP ";
        if columns > word.len() + 2 {
            lane.write(
                lane.column(pause.from_ms) + (columns - word.len()) / 2,
                word,
            );
        }
    }
    for access in scene
        .accesses
        .iter()
        .filter(|access| access.client == client)
    {
        if let Some(glyph) = written(access.kind) {
            lane.set_write(access.at_ms, glyph);
        }
    }
    lane
}

fn leases(scene: &Scene) -> Lane {
    let mut lane = Lane::new(scene);
    for lease in &scene.leases {
        lane.fill(lease.span, '·');
        let (from, to) = (
            lane.column(lease.span.from_ms),
            lane.column(lease.span.to_ms),
        );
        lane.write(from, &format!("[{}", short(lease.token)));
        // This is one column earlier, because the next lease may begin where this one ends.
        lane.cells[to.saturating_sub(1)] = if lease.expired { '×' } else { ']' };
    }
    lane
}

fn accesses(scene: &Scene) -> Lane {
    let mut lane = Lane::new(scene);
    for access in &scene.accesses {
        if written(access.kind).is_none() {
            lane.set(access.at_ms, 'r');
        }
    }
    for access in &scene.accesses {
        if let Some(glyph) = written(access.kind) {
            lane.set_write(access.at_ms, glyph);
        }
    }
    lane
}

fn marks(scene: &Scene) -> Lane {
    let mut lane = Lane::new(scene);
    for (at_ms, token) in &scene.high_water {
        lane.write(lane.column(*at_ms), &short(*token));
    }
    lane
}

/// The marks for the outcomes of a write.
const WRITES: [char; 3] = ['!', '✓', '✗'];

const fn written(kind: AccessKind) -> Option<char> {
    match kind {
        AccessKind::Read => None,
        AccessKind::Accepted { wrong: Some(_), .. } => Some('!'),
        AccessKind::Accepted { .. } => Some('✓'),
        AccessKind::Refused { .. } => Some('✗'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a refused write that is not seen, because an accepted one is in its column.
    #[test]
    fn the_outcome_of_a_write_is_not_hidden_by_another_one() {
        let mut lane = Lane {
            cells: vec![' '; WIDTH],
            length_ms: 1000,
        };
        lane.set(500, 'r');
        lane.set_write(500, '✓');
        lane.set_write(501, '!');
        assert_eq!(lane.cells.iter().collect::<String>().trim(), "✓!");
        lane.set_write(1000, '✓');
        lane.set_write(1000, '✗');
        assert!(lane.cells.ends_with(&['✗', '✓']), "{:?}", lane.cells);
    }
}
