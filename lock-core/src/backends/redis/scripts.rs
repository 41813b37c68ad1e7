//! The scripts, each put together from its own text and the shared ones that it begins with.

use std::sync::LazyLock;

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

/// Puts a script together: its first line, which has its flags, the constants, the shared parts
/// that its second line names, and the rest. Comments are left out: servers keep every script.
fn assemble(script: &str) -> String {
    let (flags, body) = script.split_once('\n').unwrap_or((script, ""));
    let begins_with = body.lines().next().unwrap_or_default();
    let named = |(name, _): &&(&str, &str)| begins_with.contains(name);
    let shared = SHARED.iter().filter(named).map(|(_, text)| *text);
    let constants = constants();
    let parts = std::iter::once(constants.as_str())
        .chain(shared)
        .chain([body]);
    let code = parts
        .flat_map(str::lines)
        .filter(|line| !line.trim_start().starts_with("--") && !line.is_empty());
    std::iter::once(flags)
        .chain(code)
        .collect::<Vec<_>>()
        .join("\n")
}

/// What scripts and clients have to agree on.
fn constants() -> String {
    format!(
        "local ENDED_MS, QUEUE_MS, PROVISIONAL_MS, MOVES = {}, {}, {}, {MOVES}\n\
         local TOKEN_MAX, MAX_LEAD, MAX_JUMP = {}, {}, {}\n\
         local QUEUE_TEXT = \"{}\"",
        ENDED_TTL.as_millis(),
        QUEUE_TTL.as_millis(),
        PROVISIONAL.as_millis(),
        FencingToken::MAX.get(),
        InitialToken::clock_token(InitialToken::MAX_LEAD),
        InitialToken::MAX_JUMP,
        QUEUE_TTL.as_millis(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_begins_with_its_flags_and_what_it_shares() {
        let text = assemble(include_str!("lua/renew.lua"));
        assert!(
            text.starts_with("#!lua flags=allow-oom\nlocal ENDED_MS, "),
            "{text}"
        );
        assert!(text.contains("local function load(key)"));
        assert!(
            !text.contains("local function hand_on"),
            "renewals have no line"
        );
        assert!(!text.contains("--"), "{text}");
    }
}
