//! The scripts, each put together from its own text and the parts that it shares or tries.

use std::{sync::LazyLock, time::Duration};

use redis::Script;

use super::{ENDED_TTL, MOVES, PROVISIONAL, QUEUE_TTL};
use lock_core::{FencingToken, InitialToken};

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        /// All of them. A server that does not know one of them knows none.
        pub(super) static ALL: &[&LazyLock<Script>] = &[$(&$name),+];

        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            let (name, text) = part!($file);
            Script::new(&Source::read(name, text).assembled())
        });)+
    };
}

macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("lua/", $name, ".lua")))
    };
}

scripts! {
    ACQUIRE = "acquire";
    TOGETHER = "together";
    CONFIRM = "confirm";
    RENEW = "renew";
    RELEASE = "release";
    CANCEL = "cancel";
    FORCE_RELEASE = "force_release";
    INSPECT = "inspect";
    REWRITE = "rewrite";
}

/// The parts that scripts have in common or try first, in the order in which they build on each
/// other.
const PARTS: [(&str, &str); 7] = [
    part!("fast_acquire"),
    part!("fast_enqueue"),
    part!("fast_release"),
    part!("fast_hand_over"),
    part!("shared"),
    part!("tokens"),
    part!("queue"),
];

/// The text of a script, taken apart.
struct Source<'a> {
    name: &'a str,
    /// The first line.
    flags: &'a str,
    /// The parts that may answer for it, and those that it is built on, as the second line has it.
    parts: (&'a str, &'a str),
    body: &'a str,
}

impl<'a> Source<'a> {
    fn read(name: &'a str, text: &'a str) -> Self {
        let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
        let names = body.lines().next().unwrap_or_default();
        Self {
            name,
            flags,
            parts: names.split_once("Begins with ").unwrap_or((names, "")),
            body,
        }
    }

    fn tries(&self, part: &str) -> bool {
        has_word(self.parts.0, part)
    }

    fn begins_with(&self, part: &str) -> bool {
        has_word(self.parts.1, part)
    }

    fn tried(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        PARTS.iter().filter(|(name, _)| self.tries(name))
    }

    /// What is tried is called before anything else is made.
    fn assembled(&self) -> String {
        let tried = self.tried().map(|(name, text)| {
            let code = code_of(text);
            format!("{code}local answer = {name}()\nif answer then return answer end\n")
        });
        let shared = PARTS.iter().filter(|(name, _)| self.begins_with(name));
        let code: String = tried
            .chain(shared.map(|(_, text)| code_of(text)))
            .chain([code_of(self.body)])
            .collect();
        let Self { name, flags, .. } = self;
        with_constants(format!("{flags}\n{code}return {name}()\n"))
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split([' ', ',', '.']).any(|other| other == word)
}

/// Without comments, because servers keep every script.
fn code_of(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("--") && !line.is_empty())
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// With the constants put in, because every local that a function refers to costs time whenever
/// that function is made.
fn with_constants(code: String) -> String {
    let put_in = |code: String, (name, value): (&str, String)| code.replace(name, &value);
    constants().into_iter().fold(code, put_in)
}

/// What scripts and clients have to agree on.
fn constants() -> [(&'static str, String); 10] {
    let millis = |time: Duration| time.as_millis().to_string();
    // Commands take text, and it takes a while to make it of a number.
    let text = |time| format!("\"{}\"", millis(time));
    [
        ("ENDED_MS", millis(ENDED_TTL)),
        ("ENDED_TEXT", text(ENDED_TTL)),
        ("QUEUE_MS", millis(QUEUE_TTL)),
        ("QUEUE_TEXT", text(QUEUE_TTL)),
        ("PROVISIONAL_MS", millis(PROVISIONAL)),
        ("PROVISIONAL_TEXT", text(PROVISIONAL)),
        ("MOVES", MOVES.to_string()),
        ("TOKEN_MAX", FencingToken::MAX.to_string()),
        (
            "MAX_LEAD",
            InitialToken::clock_token(InitialToken::MAX_LEAD).to_string(),
        ),
        ("MAX_JUMP", InitialToken::MAX_JUMP.to_string()),
    ]
}
