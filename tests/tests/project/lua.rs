//! The header of each Lua script has its arguments and its answers.

use std::collections::BTreeSet;

use e2e::project::{SourceFile, files_in};

/// A script, taken apart; or a part that several scripts share, which has no flags.
struct Script {
    name: String,
    /// Whether the script is run by itself.
    whole: bool,
    /// The comment at the top, without the dashes.
    header: Vec<String>,
    /// The code, without comments.
    body: String,
}

impl Script {
    fn read(file: &SourceFile) -> Self {
        let comment = |line: &str| line.strip_prefix("--").map(|text| text.trim().to_owned());
        let code = |line: &str| line.split("--").next().unwrap_or_default().to_owned() + "\n";
        // `#!lua flags=..` comes before the header.
        let lines = || file.text.lines().skip_while(|line| line.starts_with("#!"));
        let header: Vec<_> = lines().map_while(comment).collect();
        Self {
            name: file.path.file_name().unwrap().to_str().unwrap().to_owned(),
            whole: file.text.starts_with("#!"),
            body: lines().skip(header.len()).map(code).collect(),
            header,
        }
    }

    /// The indices that the header describes, one per line: `KEYS[1] lease of the resource`.
    fn documented(&self, array: &str) -> Vec<String> {
        let described = self.header.iter().filter_map(|line| {
            let (index, text) = line
                .strip_prefix(array)?
                .strip_prefix('[')?
                .split_once(']')?;
            assert!(
                !text.trim().is_empty(),
                "{}: {line} says nothing",
                self.name
            );
            Some(index.to_owned())
        });
        described.collect()
    }

    /// The indices that the body and its shared parts use, also computed indices.
    fn used(&self, array: &str, all: &[Self]) -> BTreeSet<String> {
        let opening = format!("{array}[");
        let uses = self.body.split(&opening).skip(1);
        let own = uses.map(|rest| rest.split(']').next().unwrap().to_owned());
        let parts = all
            .iter()
            .filter(|part| self.tries(part) || self.begins_with(part));
        own.chain(parts.flat_map(|part| part.used(array, all)))
            .collect()
    }

    /// Whether the first lines of the header name this part as a part that is shared with other
    /// scripts.
    fn begins_with(&self, part: &Self) -> bool {
        self.names("Begins with ", part)
    }

    /// Whether the first lines of the header name this part as a part that may answer instead of
    /// the script.
    fn tries(&self, part: &Self) -> bool {
        self.names("Tries ", part)
    }

    /// `Tries a.lua, b.lua.`, and in the next line `Begins with c.lua.`
    fn names(&self, verb: &str, part: &Self) -> bool {
        let mut first = self.header.iter().take_while(|line| !line.is_empty());
        let names = first.find_map(|line| line.strip_prefix(verb));
        let names = names.unwrap_or_default().trim_end_matches('.');
        !part.whole && names.split(", ").any(|name| name == part.name)
    }

    /// A script that takes any number of keys says so in the line of the last key that it
    /// describes.
    fn repeats(&self, array: &str) -> bool {
        let mut lines = self.header.iter().rev();
        let last = lines.find(|line| line.starts_with(array));
        last.is_some_and(|line| line.contains("more for every"))
    }

    /// The words in quotes after `Returns`, up to an empty line.
    fn documented_answers(&self) -> BTreeSet<String> {
        let returns = self
            .header
            .iter()
            .skip_while(|line| !line.starts_with("Returns"))
            .take_while(|line| !line.is_empty());
        let quoted = returns.flat_map(|line| line.split('"').skip(1).step_by(2));
        quoted.map(str::to_owned).collect()
    }

    fn returned(&self) -> impl Iterator<Item = &str> {
        self.body.split("return ").skip(1)
    }

    /// The first words of the answers in the body: `return {"held", ..}` or `return "held"`. A part
    /// returns `nil, {"missing"}`. This is an answer of scripts that `return wrong`.
    fn answers(&self, all: &[Self]) -> BTreeSet<String> {
        let passed_on = self.body.contains("return wrong");
        let parts = all
            .iter()
            .filter(|part| passed_on && self.begins_with(part));
        let wrong = parts.flat_map(|part| part.body.split("return nil, ").skip(1));
        // A part with documented answers ends the script with one of them, and so does a part that
        // is tried.
        let ends = |part: &&Self| {
            self.tries(part) || self.begins_with(part) && !part.documented_answers().is_empty()
        };
        let ended = all.iter().filter(ends).flat_map(|part| part.returned());
        let own = self.returned().chain(ended);
        own.chain(wrong)
            .filter_map(|rest| {
                rest.trim_start_matches('{')
                    .strip_prefix('"')?
                    .split_once('"')
            })
            .map(|(word, _)| word.to_owned())
            .collect()
    }
}

fn scripts() -> Vec<Script> {
    let folders = [
        "lock-services/redis/src/lua",
        "lock-services/redlock/src/lua",
        "docs/examples",
    ];
    let files = folders.map(|folder| files_in(folder, "lua"));
    assert!(
        files.iter().all(|files| !files.is_empty()),
        "no script found"
    );
    files.iter().flatten().map(Script::read).collect()
}

/// Catches: a script that is called with another number of arguments.
#[test]
fn headers_say_which_keys_and_arguments_there_are() {
    let all = scripts();
    for script in all.iter().filter(|script| script.whole) {
        for array in ["KEYS", "ARGV"] {
            let documented = script.documented(array);
            let counted: Vec<_> = (1..=documented.len()).map(|n| n.to_string()).collect();
            assert_eq!(
                documented, counted,
                "{}: {array} in the header",
                script.name
            );
            let used = script.used(array, &all);
            if used.iter().any(|index| index.parse::<u32>().is_err()) {
                let why = "computes an index, so the header has to say `more for every ..`";
                assert!(script.repeats(array), "{}: {array} {why}", script.name);
            } else {
                let documented: BTreeSet<_> = documented.into_iter().collect();
                assert_eq!(
                    used, documented,
                    "{}: {array}, body against header",
                    script.name
                );
            }
        }
    }
}

/// Catches: an answer that no caller expects.
#[test]
fn headers_say_which_answers_there_are() {
    let all = scripts();
    for script in all.iter().filter(|script| script.whole) {
        assert_eq!(
            script.answers(&all),
            script.documented_answers(),
            "{}",
            script.name
        );
        assert!(
            !script.answers(&all).is_empty(),
            "{}: no answer found",
            script.name
        );
    }
}
