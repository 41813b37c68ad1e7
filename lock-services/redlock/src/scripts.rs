//! The scripts. Each is put together from its own text and the parts that it begins with.

use std::sync::LazyLock;

use redis::Script;

use super::ENDED_TTL;
use lock_core::FencingToken;

macro_rules! part {
    ($name:literal) => {
        ($name, include_str!(concat!("lua/", $name, ".lua")))
    };
}

macro_rules! scripts {
    ($($name:ident = $file:literal;)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            let (_, text) = part!($file);
            Script::new(&assembled(text))
        });)+
    };
}

scripts! {
    ACQUIRE = "acquire";
    RAISE = "raise";
    UNDO = "undo";
    CANCEL = "cancel";
    RELEASE = "release";
    RENEW = "renew";
    INSPECT = "inspect";
    FORCE = "force";
    LEASES = "leases";
    COUNT = "count";
    SEED = "seed";
    MARK = "mark";
    CLEAR = "clear";
    LIST = "list";
    MISSING = "missing";
    SERVE = "serve";
}

const PARTS: [(&str, &str); 8] = [
    part!("first_grant"),
    part!("first_raise"),
    part!("first_release"),
    part!("serving"),
    part!("healing"),
    part!("greater"),
    part!("counts"),
    part!("lease"),
];

/// The text of a whole script. The first line has the flags, and the second line names the parts
/// with which a script begins. Comments are removed, because servers keep every script in memory.
fn assembled(text: &str) -> String {
    let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
    let names = body.lines().next().unwrap_or_default();
    let shared = PARTS.iter().filter(|(name, _)| {
        names.contains("Begins with ") && names.contains(&format!("{name}.lua"))
    });
    let code: String = shared
        .map(|(_, text)| *text)
        .chain([body])
        .flat_map(str::lines)
        .filter(|line| !line.trim_start().starts_with("--") && !line.is_empty())
        .flat_map(|line| [line, "\n"])
        .collect();
    let ended = ENDED_TTL.as_millis();
    let code = code
        .replace("ENDED_MS", &ended.to_string())
        .replace("ENDED_TEXT", &format!("\"{ended}\""))
        .replace("TOKEN_MAX", &format!("\"{}\"", FencingToken::MAX))
        .replace("EXACT_MAX", &FencingToken::MAX.to_string());
    format!("{flags}\n{code}")
}
