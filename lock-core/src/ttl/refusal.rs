//! Panics that name the value, even in constants, where nothing can be formatted.

/// Panics at the location of the caller's caller.
#[track_caller]
pub(super) const fn refuse(allowed: &str, value: u32, unit: &str) -> ! {
    let line = Line::EMPTY
        .text("a ttl is ")
        .text(allowed)
        .text(", not ")
        .number(value)
        .text(unit)
        .text(": Ttl::new returns an error instead of this panic");
    match str::from_utf8(line.bytes.split_at(line.length).0) {
        Ok(line) => panic!("{}", line),
        Err(_) => panic!("not a ttl"),
    }
}

/// A text that is assembled piece by piece.
struct Line {
    bytes: [u8; 128],
    length: usize,
}

impl Line {
    const EMPTY: Self = Self {
        bytes: [0; 128],
        length: 0,
    };

    const fn text(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            self = self.byte(text[at]);
            at += 1;
        }
        self
    }

    const fn number(self, number: u32) -> Self {
        let before = match number / 10 {
            0 => self,
            tens => self.number(tens),
        };
        before.byte(b'0' + (number % 10) as u8)
    }

    const fn byte(mut self, byte: u8) -> Self {
        self.bytes[self.length] = byte;
        self.length += 1;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{self, Location},
        sync::mpsc,
        thread,
    };

    use crate::Ttl;

    /// Runs `make`, which panics; returns the location of the panic and its message.
    fn panicked(make: impl FnOnce() -> Ttl + panic::UnwindSafe) -> (String, String) {
        let (told, heard) = mpsc::channel();
        let (before, here) = (panic::take_hook(), thread::current().id());
        panic::set_hook(Box::new(move |info| match info.location() {
            Some(at) if thread::current().id() == here => {
                let said = info.payload_as_str().unwrap_or_default();
                drop(told.send((place(at), said.to_owned())));
            }
            _ => before(info),
        }));
        assert!(panic::catch_unwind(make).is_err());
        heard.recv().unwrap()
    }

    fn place(at: &Location<'_>) -> String {
        format!("{}:{}", at.file(), at.line())
    }

    #[test]
    fn a_constant_that_cannot_be_is_refused_where_it_is_made_with_its_value() {
        let expected = format!("{}:{}", file!(), line!() + 1);
        let (at, said) = panicked(|| Ttl::millis(1));
        assert_eq!(at, expected);
        assert_eq!(
            said,
            "a ttl is between 10 ms and 86400000 ms, not 1 ms: \
             Ttl::new returns an error instead of this panic"
        );

        let expected = format!("{}:{}", file!(), line!() + 1);
        let (at, said) = panicked(|| Ttl::secs(u32::MAX));
        assert_eq!(at, expected);
        assert!(
            said.contains("1 s and 86400 s, not 4294967295 s:"),
            "{said}"
        );
    }
}
