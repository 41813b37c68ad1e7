//! The scripts, each put together from its own text and the shared ones that it begins with.

use std::{sync::LazyLock, time::Duration};

use redis::Script;

use super::{ENDED_TTL, MOVES, PROVISIONAL, QUEUE_TTL};
use crate::{FencingToken, InitialToken};

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(&assemble(include_str!($file))));)+
    };
}

scripts! {
    ACQUIRE = "lua/acquire.lua";
    TOGETHER = "lua/together.lua";
    CONFIRM = "lua/confirm.lua";
    RENEW = "lua/renew.lua";
    RELEASE = "lua/release.lua";
    CANCEL = "lua/cancel.lua";
    FORCE_RELEASE = "lua/force_release.lua";
    INSPECT = "lua/inspect.lua";
    REWRITE = "lua/rewrite.lua";
}

const SHARED: [(&str, &str); 5] = [
    (
        "uncontended_acquire.lua",
        include_str!("lua/uncontended_acquire.lua"),
    ),
    (
        "uncontended_release.lua",
        include_str!("lua/uncontended_release.lua"),
    ),
    ("shared.lua", include_str!("lua/shared.lua")),
    ("tokens.lua", include_str!("lua/tokens.lua")),
    ("queue.lua", include_str!("lua/queue.lua")),
];

/// Puts a script together: its first line, which has its flags, the shared parts that its second
/// line names, and the rest. Comments are left out, because servers keep every script, and the
/// constants are put in, because every local that a function refers to costs time whenever that
/// function is made.
fn assemble(script: &str) -> String {
    let (flags, body) = script.split_once('\n').unwrap_or((script, ""));
    let begins_with = body.lines().next().unwrap_or_default();
    let named = |(name, _): &&(&str, &str)| begins_with.contains(name);
    let shared = SHARED.iter().filter(named).map(|(_, text)| *text);
    let code = shared
        .chain([body])
        .flat_map(str::lines)
        .filter(|line| !line.trim_start().starts_with("--") && !line.is_empty());
    let code = std::iter::once(flags)
        .chain(code)
        .collect::<Vec<_>>()
        .join("\n");
    let put_in = |code: String, (name, value): (&str, String)| code.replace(name, &value);
    constants().into_iter().fold(code, put_in)
}

/// What scripts and clients have to agree on.
fn constants() -> [(&'static str, String); 9] {
    let millis = |time: Duration| time.as_millis().to_string();
    // Commands take text, and it takes a while to make it of a number.
    let text = |time| format!("\"{}\"", millis(time));
    [
        ("ENDED_MS", millis(ENDED_TTL)),
        ("ENDED_TEXT", text(ENDED_TTL)),
        ("QUEUE_MS", millis(QUEUE_TTL)),
        ("QUEUE_TEXT", text(QUEUE_TTL)),
        ("PROVISIONAL_MS", millis(PROVISIONAL)),
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
        let text = assemble(include_str!("lua/renew.lua"));
        assert!(
            text.starts_with("#!lua flags=allow-oom\nlocal time"),
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
