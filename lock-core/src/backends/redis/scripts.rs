//! The scripts, each put together from its own text and the shared ones that it begins with.

use std::{sync::LazyLock, time::Duration};

use redis::Script;

use super::{ENDED_TTL, MOVES, PROVISIONAL, QUEUE_TTL};
use crate::{FencingToken, InitialToken};

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            let (name, text) = part!($file);
            Script::new(&assemble(name, text))
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
    part!("uncontended_acquire"),
    part!("line_up"),
    part!("uncontended_release"),
    part!("hand_over"),
    part!("shared"),
    part!("tokens"),
    part!("queue"),
];

/// Puts a script together: its first line, which has its flags, the parts that its second line
/// names, and what is its own. Of what it tries each part has a function of that name, which is
/// called before anything else is made; so has the script itself.
fn assemble(name: &str, script: &str) -> String {
    let (flags, body) = script.split_once('\n').unwrap_or((script, ""));
    let first = body.lines().next().unwrap_or_default();
    let (tries, begins_with) = first.split_once("Begins with ").unwrap_or((first, ""));
    let parts_of = |names: &str| {
        let names = names.to_owned();
        let named = move |(name, _): &(&str, &str)| names.contains(&format!("{name}.lua"));
        PARTS.into_iter().filter(named)
    };
    let tried = parts_of(tries).map(|(name, text)| {
        format!(
            "{}local answer = {name}()\nif answer then return answer end\n",
            code_of(text)
        )
    });
    let shared = parts_of(begins_with).map(|(_, text)| code_of(text));
    let code: String = tried.chain(shared).collect();
    with_constants(format!(
        "{flags}\n{code}{}return {name}()\n",
        code_of(body)
    ))
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
        let text = assemble("renew", include_str!("lua/renew.lua"));
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
}
