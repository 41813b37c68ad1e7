//! The scripts. Each is put together from its own text and the parts that it shares or tries.

use std::{sync::LazyLock, time::Duration};

use redis::Script;

use super::{ENDED_TTL, MOVES, PROVISIONAL, QUEUE_TTL};
use lock_core::{FencingToken, InitialToken};

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        /// All scripts. A server that does not know one of them is taken to know none.
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

/// The parts that scripts share or try first. Each part uses only parts before it.
const PARTS: [(&str, &str); 10] = [
    part!("fast_acquire"),
    part!("fast_release"),
    part!("lease"),
    part!("keys"),
    part!("fast_enqueue"),
    part!("fast_hand_over"),
    part!("shared"),
    part!("keep"),
    part!("tokens"),
    part!("queue"),
];

/// The text of a script, taken apart.
struct Source<'a> {
    name: &'a str,
    /// The first line.
    flags: &'a str,
    /// The parts that it tries, by the next lines of the header. Such a part may answer in its
    /// place.
    tries: &'a str,
    /// The parts that it is built on.
    begins_with: &'a str,
    body: &'a str,
}

impl<'a> Source<'a> {
    fn read(name: &'a str, text: &'a str) -> Self {
        let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
        let (parts, _) = body.split_once("\n--\n").unwrap_or_default();
        let (tries, begins_with) = parts.split_once("Begins with ").unwrap_or((parts, ""));
        Self {
            name,
            flags,
            tries,
            begins_with,
            body,
        }
    }

    /// The whole script. A part that may answer is called before the functions of later parts are
    /// made.
    fn assembled(&self) -> String {
        let parts = PARTS.iter().filter_map(|(name, text)| {
            let code = code_of(text);
            if has_word(self.tries, name) {
                let answers =
                    format!("local answer = {name}()\nif answer then return answer end\n");
                return Some(code + &answers);
            }
            has_word(self.begins_with, name).then_some(code)
        });
        let code: String = parts.chain([code_of(self.body)]).collect();
        let Self { name, flags, .. } = self;
        with_constants(format!("{flags}\n{code}return {name}()\n"))
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split([' ', ',', '.']).any(|other| other == word)
}

/// The code without comments, because servers keep every script in memory.
fn code_of(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("--") && !line.is_empty())
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// The code with the values of the constants. Locals would cost time, because each local that a
/// function refers to costs time whenever that function is made.
fn with_constants(code: String) -> String {
    let put_in = |code: String, (name, value): (&str, String)| code.replace(name, &value);
    constants().into_iter().fold(code, put_in)
}

/// The constants that scripts and clients have to agree on.
fn constants() -> [(&'static str, String); 11] {
    let millis = |time: Duration| time.as_millis().to_string();
    // Commands take text, and a script needs time to convert a number.
    let text = |time| format!("\"{}\"", millis(time));
    [
        ("ENDED_MS", millis(ENDED_TTL)),
        ("ENDED_TEXT", text(ENDED_TTL)),
        ("QUEUE_MS", millis(QUEUE_TTL)),
        ("QUEUE_TEXT", text(QUEUE_TTL)),
        ("PROVISIONAL_MS", millis(PROVISIONAL)),
        ("PROVISIONAL_TEXT", text(PROVISIONAL)),
        ("VACANT", "\"vacant\"".to_owned()),
        ("MOVES", MOVES.to_string()),
        ("TOKEN_MAX", FencingToken::MAX.to_string()),
        (
            "MAX_LEAD",
            InitialToken::clock_token(InitialToken::MAX_LEAD).to_string(),
        ),
        ("MAX_JUMP", InitialToken::MAX_JUMP.to_string()),
    ]
}
