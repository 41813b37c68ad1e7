use std::sync::LazyLock;

use redis::Script;

pub(super) static CLAIM: LazyLock<Script> = LazyLock::new(|| script(include_str!("lua/claim.lua")));
pub(super) static READ: LazyLock<Script> = LazyLock::new(|| script(include_str!("lua/read.lua")));
pub(super) static WRITE: LazyLock<Script> = LazyLock::new(|| script(include_str!("lua/write.lua")));

/// The line with the flags has to be the first one, so the rule comes after it.
fn script(text: &str) -> Script {
    let (flags, body) = text.split_once('\n').unwrap_or((text, ""));
    Script::new(&format!("{flags}\n{}{body}", include_str!("lua/rule.lua")))
}
