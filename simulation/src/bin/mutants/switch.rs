//! Sources that behave as they did, unless `PALISADE_MUTANT` names one of their mutants.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use crate::{
    Failure,
    list::{List, Mutant, only},
};

/// The name of the environment variable.
pub(crate) const VARIABLE: &str = "PALISADE_MUTANT";

/// Appended to the `lib.rs` of each crate that has mutants. When a mutant is reached for the first
/// time, the process prints this past the test runner, which would capture the output.
const SWITCH: &str = r#"
mod palisade_mutants {
    use std::{env, io::{self, Write}, sync::{Once, OnceLock}};

    fn is_present(name: &str) -> bool {
        static PRESENT: OnceLock<Option<String>> = OnceLock::new();
        let present = PRESENT.get_or_init(|| env::var("PALISADE_MUTANT").ok());
        present.as_deref() == Some(name)
    }

    fn reached(name: &str) {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| drop(writeln!(io::stderr(), "mutant reached: {name}")));
    }

    #[allow(dead_code)]
    pub(crate) fn is(name: &str) -> bool {
        let is = is_present(name);
        if is {
            reached(name);
        }
        is
    }

    #[allow(dead_code)]
    pub(crate) fn text(text: impl Into<String>) -> String {
        let text = text.into();
        let is_once = |find: &str| text.matches(find).count() == 1;
        let present = TEXTS.iter().find(|(name, find, _)| is_present(name) && is_once(find));
        let Some((name, find, instead)) = present else { return text };
        reached(name);
        text.replace(find, instead)
    }
"#;

/// The changed files of a workspace, by path.
pub(crate) fn switched(
    list: &List,
    read: impl Fn(&Path) -> Result<String, Failure>,
) -> Result<BTreeMap<PathBuf, String>, Failure> {
    let mut files = BTreeMap::new();
    let mut texts = BTreeMap::<PathBuf, Vec<&Mutant>>::new();
    let in_rust = || list.mutants.iter().filter(|mutant| !mutant.is_script());
    let paths: BTreeSet<_> = in_rust().map(|mutant| Path::new(&mutant.file)).collect();
    for path in paths {
        let mutants: Vec<_> = in_rust().filter(|it| Path::new(&it.file) == path).collect();
        texts.entry(title_page(path)?).or_default();
        files.insert(path.to_owned(), with_switches(&read(path)?, &mutants)?);
    }
    for mutant in list.mutants.iter().filter(|mutant| mutant.is_script()) {
        let seam = list.seam_of(mutant).ok_or("a script has no seam")?;
        let page = title_page(Path::new(&seam.file))?;
        texts.entry(page).or_default().push(mutant);
    }
    for seam in &list.seams {
        let path = Path::new(&seam.file);
        let text = match files.get(path) {
            Some(text) => String::clone(text),
            None => read(path)?,
        };
        let place = only(&text, &seam.find)?;
        let text = [&text[..place.start], &seam.instead, &text[place.end..]].concat();
        files.insert(path.to_owned(), text);
        texts.entry(title_page(path)?).or_default();
    }
    for (page, scripts) in texts {
        let text = match files.get(&page) {
            Some(text) => String::clone(text),
            None => read(&page)?,
        };
        files.insert(page, text + SWITCH + &constant(&scripts) + "}\n");
    }
    Ok(files)
}

/// The texts that the mutants of scripts replace.
fn constant(scripts: &[&Mutant]) -> String {
    let row = |mutant: &&Mutant| {
        let Mutant {
            name,
            find,
            instead,
            ..
        } = mutant;
        format!("        ({name:?}, {find:?}, {instead:?}),\n")
    };
    let rows: String = scripts.iter().map(row).collect();
    format!("\n    const TEXTS: &[(&str, &str, &str)] = &[\n{rows}    ];\n")
}

/// The `lib.rs` of the crate of a file.
fn title_page(file: &Path) -> Result<PathBuf, Failure> {
    let mut folders = file.ancestors();
    let sources = folders.find(|folder| folder.ends_with("src"));
    let sources = sources.ok_or_else(|| format!("{} is in no crate", file.display()))?;
    Ok(sources.join("lib.rs"))
}

/// The text with all its mutants. Several may replace the same text. Others must not overlap.
fn with_switches(text: &str, mutants: &[&Mutant]) -> Result<String, Failure> {
    let mut places = BTreeMap::<(usize, usize), Vec<&Mutant>>::new();
    for mutant in mutants {
        let place = mutant.place(text)?;
        places
            .entry((place.start, place.end))
            .or_default()
            .push(mutant);
    }
    let (mut switched, mut copied) = (String::new(), 0);
    for ((start, end), mutants) in places {
        if start < copied {
            return Err(format!("{} is in the place of another", mutants[0].name).into());
        }
        switched += &text[copied..start];
        switched += &switch(&text[start..end], &mutants);
        copied = end;
    }
    Ok(switched + &text[copied..])
}

/// The text as one of several branches.
fn switch(text: &str, mutants: &[&Mutant]) -> String {
    let branch = |mutant: &&Mutant| {
        let Mutant { name, instead, .. } = mutant;
        format!("if crate::palisade_mutants::is({name:?}) {{ {instead} }} else ")
    };
    let branches: String = mutants.iter().map(branch).collect();
    let whole = format!("{branches}{{ {text} }}");
    if text.ends_with([';', '}']) {
        whole
    } else {
        format!("({whole})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[mutant]]
        name = "late"
        breaks = "G5"
        file = "core/src/a.rs"
        find = "x < y"
        instead = "true"
        by = "simulation"

        [[mutant]]
        name = "never"
        breaks = "G5"
        file = "core/src/a.rs"
        find = "x < y"
        instead = "false"
        by = "simulation"

        [[mutant]]
        name = "kept"
        breaks = "G8"
        file = "core/src/a.rs"
        within = "later; drop(z);"
        find = "drop(z);"
        instead = ""
        by = "simulation"

        [[mutant]]
        name = "unmarked"
        breaks = "G6"
        file = "service/src/lua/end.lua"
        find = "mark()"
        instead = "nil"
        by = "conformance"
        test = "service lib a"

        [[seam]]
        folder = "service/src/lua"
        file = "service/src/scripts.rs"
        find = "code"
        instead = "crate::palisade_mutants::text(code)"
    "#;

    fn files(list: &str) -> Result<BTreeMap<PathBuf, String>, Failure> {
        let list: List = toml::from_str(list).unwrap();
        switched(&list, |path| {
            Ok(match path.file_name().and_then(|name| name.to_str()) {
                Some("a.rs") => "if x < y { drop(z); } later; drop(z);".to_owned(),
                Some("scripts.rs") => "run(code)".to_owned(),
                _ => "mod a;\n".to_owned(),
            })
        })
    }

    /// Catches: a copy that behaves differently without a mutant.
    #[test]
    fn the_original_is_the_last_branch() {
        let files = files(LIST).unwrap();
        let is = |name: &str| format!("if crate::palisade_mutants::is(\"{name}\")");
        let (late, never, kept) = (is("late"), is("never"), is("kept"));
        assert_eq!(
            files[Path::new("core/src/a.rs")],
            format!(
                "if ({late} {{ true }} else {never} {{ false }} else {{ x < y }}) {{ drop(z); }} \
                 later; {kept} {{  }} else {{ drop(z); }}"
            )
        );
    }

    /// Catches: a crate without the switch, and a script that no seam changes.
    #[test]
    fn each_crate_with_mutants_has_the_switch() {
        let files = files(LIST).unwrap();
        let core = &files[Path::new("core/src/lib.rs")];
        assert!(core.starts_with("mod a;\n") && core.contains(VARIABLE));
        let service = &files[Path::new("service/src/lib.rs")];
        assert!(service.contains(r#"("unmarked", "mark()", "nil"),"#));
        let scripts = &files[Path::new("service/src/scripts.rs")];
        assert_eq!(scripts, "run(crate::palisade_mutants::text(code))");
        assert_eq!(files.len(), 4);
    }

    /// Catches: two mutants whose texts overlap, so that one is lost.
    #[test]
    fn mutants_do_not_overlap() {
        let overlapping = LIST.replacen("find = \"x < y\"", "find = \"if x < y\"", 1);
        files(&overlapping).unwrap_err();
    }
}
