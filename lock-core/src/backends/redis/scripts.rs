//! The scripts, each put together from its own text and the parts that it shares or tries: as
//! functions of one library, and as scripts of their own for servers that have none.

use std::{sync::LazyLock, time::Duration};

use super::{ENDED_TTL, MOVES, PROVISIONAL, QUEUE_TTL};
use crate::{FencingToken, InitialToken};

/// What a server runs in one step, in both ways in which it can be told to.
pub(super) struct Script {
    function: String,
    by_itself: redis::Script,
}

/// All scripts as functions. What they share is made when it is loaded, and not for every call.
///
/// Its name and those of its functions have a digest of the text in them, so that those of several
/// versions are on a server side by side.
pub(super) struct Library {
    digest: String,
    text: String,
}

pub(super) static LIBRARY: LazyLock<Library> = LazyLock::new(Library::assemble);

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        /// By name.
        const SOURCES: &[(&str, &str)] = &[$(part!($file)),+];

        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            let (name, text) = part!($file);
            Script::new(name, text)
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
    STANDING = "standing";
    RETIRE = "retire";
    REINSTATE = "reinstate";
}

/// The parts that scripts have in common or try first, in the order in which they build on each
/// other.
const PARTS: [(&str, &str); 8] = [
    part!("uncontended_acquire"),
    part!("line_up"),
    part!("uncontended_release"),
    part!("hand_over"),
    part!("shared"),
    part!("tokens"),
    part!("queue"),
    part!("retired"),
];

impl Script {
    fn new(name: &str, text: &str) -> Self {
        Self {
            function: function_name(name, &LIBRARY.digest),
            by_itself: redis::Script::new(&Source::read(name, text).as_script()),
        }
    }

    /// The name of its function.
    pub(super) fn function(&self) -> &str {
        &self.function
    }

    /// The same as a script.
    pub(super) const fn by_itself(&self) -> &redis::Script {
        &self.by_itself
    }
}

impl Library {
    fn assemble() -> Self {
        let shared = PARTS.iter().filter(|(name, _)| {
            let tried = |source: &(&str, &str)| Source::read(source.0, source.1).tries(name);
            !SOURCES.iter().any(tried)
        });
        let shared: String = shared.map(|(_, text)| code_of(text)).collect();
        let functions = SOURCES.iter();
        let functions: String = functions
            .map(|(name, text)| Source::read(name, text).as_function())
            .collect();
        // Keys and arguments are those of the call that runs: there is one at a time. To look the
        // commands up for every call of one takes longer.
        let text = with_constants(format!("local KEYS, ARGV, call, try\n{shared}{functions}"))
            .replace("redis.call(", "call(")
            .replace("redis.pcall(", "try(");
        let digest = redis::Script::new(&text).get_hash()[..16].to_owned();
        let text = text.replace(DIGEST, &digest);
        Self {
            text: format!("#!lua name=palisade_{digest}\n{text}"),
            digest,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Stands for the digest in the text that it is the digest of.
const DIGEST: &str = "DIGEST";

fn function_name(name: &str, digest: &str) -> String {
    format!("palisade_{name}_{digest}")
}

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
        self.parts.0.contains(&format!("{part}.lua"))
    }

    fn begins_with(&self, part: &str) -> bool {
        self.parts.1.contains(&format!("{part}.lua"))
    }

    fn tried(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        PARTS.iter().filter(|(name, _)| self.tries(name))
    }

    /// What is tried is called before anything else is made.
    fn as_script(&self) -> String {
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

    fn as_function(&self) -> String {
        let code: String = self.tried().map(|(_, text)| code_of(text)).collect();
        let own = code_of(self.body);
        let tried: String = self
            .tried()
            .map(|(name, _)| format!("{name}() or "))
            .collect();
        let (_, flags) = self.flags.split_once("flags=").unwrap_or_default();
        let flags: Vec<_> = flags
            .split_terminator(',')
            .map(|flag| format!("\"{flag}\""))
            .collect();
        let (name, flags) = (self.name, flags.join(", "));
        let function = function_name(name, DIGEST);
        format!(
            "do\n{code}{own}redis.register_function{{\n\
             function_name = \"{function}\", flags = {{{flags}}},\n\
             callback = function(keys, argv)\n\
             if not call then call, try = redis.call, redis.pcall end\n\
             KEYS, ARGV = keys, argv\n\
             return {tried}{name}()\nend}}\nend\n"
        )
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_begins_with_its_flags_and_what_it_shares() {
        let (name, text) = part!("renew");
        let text = Source::read(name, text).as_script();
        assert!(
            text.starts_with("#!lua flags=allow-oom\nlocal time, now"),
            "{text}"
        );
        assert!(text.contains("local function load(key)"));
        assert!(
            !text.contains("local function hand_on"),
            "renewals have no line"
        );
        assert!(text.contains("<= 15000 then"), "constants: {text}");
        assert!(!text.contains("--"), "{text}");
    }

    #[test]
    fn a_library_makes_once_what_its_functions_share() {
        let Library { digest, text } = &*LIBRARY;
        assert!(text.starts_with(&format!("#!lua name=palisade_{digest}\n")));
        for part in ["load(key)", "line_up()", "hand_on(caller, start)"] {
            let made = text.matches(&format!("local function {part}")).count();
            assert_eq!(made, 1, "{part}: {text}");
        }
        for script in [&*ACQUIRE, &*INSPECT] {
            let named = format!("function_name = \"{}\"", script.function);
            assert!(text.contains(&named), "{named}: {text}");
        }
        let inspect = text.split("palisade_inspect_").nth(1).unwrap();
        assert!(inspect.contains("flags = {\"no-writes\"}"), "{inspect}");
        assert!(!text.contains(DIGEST) && !text.contains("--"), "{text}");
    }
}
