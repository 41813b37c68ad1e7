//! The colours of the terminal. The stream decides whether they are shown.

use anstyle::{AnsiColor, Style};

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const PAUSE: Style = AnsiColor::Yellow.on_default();
