//! No file imports itself by way of others: a reader can begin at the bottom.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

use e2e::project::tracked_files;

/// A module by its path below the root of its crate.
type Module = Vec<String>;

/// What a `use` names: a path, and the name that it has here.
struct Import {
    path: Vec<String>,
    name: String,
    /// It is for others: what a folder hands on of its files.
    is_public: bool,
}

/// The modules of one crate, each a file, with what they import.
type Modules = BTreeMap<Module, Vec<Import>>;

/// The crate that a source file belongs to, and its module there. Nothing for tests.
fn place(path: &Path) -> Option<(String, Module)> {
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let src = parts.iter().position(|part| *part == "src")?;
    let (folder, below) = (parts[..src].join("/"), &parts[src + 1..]);
    let (file, folders) = below.split_last()?;
    if folder.starts_with("tests") || folders.contains(&"tests") || *file == "tests.rs" {
        return None;
    }
    let mut module: Module = folders.iter().map(|part| (*part).to_owned()).collect();
    match file.strip_suffix(".rs")? {
        "mod" | "lib" | "main" => {}
        name => module.push(name.to_owned()),
    }
    Some((folder, module))
}

/// The imports of a file, without those of the unit tests at its end.
fn imports(text: &str) -> Vec<Import> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let (before, after) = (&rest[..at], &rest[at + "use ".len()..]);
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let Some((tree, further)) = after.split_once(';') else {
            break;
        };
        if line.is_empty() || line.starts_with("pub") {
            let begin = found.len();
            expand(tree, &[], &mut found);
            for import in &mut found[begin..] {
                import.is_public = line.starts_with("pub");
            }
            rest = further;
        } else {
            rest = after;
        }
    }
    found
}

/// Adds each path of a `use` tree.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<Import>) {
    let tree = tree.trim();
    if let Some((head, tail)) = tree.split_once('{') {
        let inner = tail.trim_end().strip_suffix('}').unwrap_or(tail);
        let mut prefix = prefix.to_vec();
        prefix.extend(segments(head));
        for item in items(inner) {
            expand(item, &prefix, found);
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut whole = prefix.to_vec();
    whole.extend(segments(path));
    if whole.len() > 1 && whole.last().is_some_and(|last| last == "self") {
        whole.pop();
    }
    let last = whole.last().cloned().unwrap_or_default();
    let name = if alias.is_empty() {
        last
    } else {
        alias.trim().to_owned()
    };
    found.push(Import {
        path: whole,
        name,
        is_public: false,
    });
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
}

/// The parts between commas that are in no braces.
fn items(tree: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut items) = (0_usize, 0, Vec::new());
    for (at, letter) in tree.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&tree[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items.push(&tree[begin..]);
    items.retain(|item| !item.trim().is_empty());
    items
}

/// The module that defines what a path names, as far as it is of this crate. Names that a module
/// only hands on are followed to where they come from.
fn origin(modules: &Modules, from: &Module, path: &[String], depth: usize) -> Option<Module> {
    const RE_EXPORTS_AT_MOST: usize = 8;
    let (first, mut rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => Module::new(),
        "self" => from.clone(),
        "super" => parent(from),
        child => {
            let mut inside = from.clone();
            inside.push(child.to_owned());
            modules.contains_key(&inside).then_some(inside)?
        }
    };
    while let Some((next, further)) = rest.split_first() {
        let mut inside = at.clone();
        inside.push(next.clone());
        if next == "super" {
            at = parent(&at);
        } else if modules.contains_key(&inside) {
            at = inside;
        } else {
            break;
        }
        rest = further;
    }
    let Some(name) = rest.first() else {
        return Some(at);
    };
    let handed_on = modules.get(&at)?.iter().find(|import| import.name == *name);
    match handed_on {
        Some(import) if depth < RE_EXPORTS_AT_MOST => origin(modules, &at, &import.path, depth + 1),
        _ => Some(at),
    }
}

fn parent(module: &Module) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// Which modules each module imports from.
fn edges(modules: &Modules) -> BTreeMap<&Module, BTreeSet<Module>> {
    let of = |module: &Module, imports: &[Import]| {
        let own = imports.iter().filter(|import| !import.is_public);
        let origins = own.filter_map(|import| origin(modules, module, &import.path, 0));
        // What a folder's own file makes of the files below it is no way up.
        origins
            .filter(|origin| !origin.starts_with(module))
            .collect()
    };
    let edges = modules
        .iter()
        .map(|(module, imports)| (module, of(module, imports)));
    edges.collect()
}

/// The imports that lie on a circle: from whose end one comes back to their beginning.
fn circular(modules: &Modules) -> Vec<String> {
    let edges = edges(modules);
    let reached_from = |begin: &Module| {
        let (mut reached, mut ahead) = (BTreeSet::new(), vec![begin.clone()]);
        while let Some(module) = ahead.pop() {
            for next in edges.get(&module).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    ahead.push(next.clone());
                }
            }
        }
        reached
    };
    let mut circular = Vec::new();
    for (module, imports) in &edges {
        let back = imports
            .iter()
            .filter(|import| reached_from(import).contains(*module));
        circular.extend(back.map(|import| format!("{} imports {}", name(module), name(import))));
    }
    circular
}

fn name(module: &Module) -> String {
    if module.is_empty() {
        "its root".to_owned()
    } else {
        module.join("::")
    }
}

fn crates(files: impl IntoIterator<Item = (String, Module, String)>) -> BTreeMap<String, Modules> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    for (folder, module, text) in files {
        let imports = imports(&text);
        crates.entry(folder).or_default().insert(module, imports);
    }
    crates
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let files = tracked_files(Some("rs"));
    let files = files.into_iter().filter_map(|file| {
        let (folder, module) = place(&file.path)?;
        Some((folder, module, file.text))
    });
    let crates = crates(files);
    assert!(crates.len() > 8, "{:?}", crates.keys());
    for (folder, modules) in &crates {
        let circles = circular(modules);
        assert!(circles.is_empty(), "{folder}:\n{}", circles.join("\n"));
    }
}

/// The control: a circle over a name that a folder hands on is found, and a ladder is none.
#[test]
fn a_circle_is_found() {
    let file = |module: &str, text: &str| {
        let module = module.split("::").filter(|part| !part.is_empty());
        let module = module.map(str::to_owned).collect();
        ("a".to_owned(), module, text.to_owned())
    };
    let ladder = [
        file("", "mod low;\nmod high;\npub use self::high::High;\n"),
        file("low", "use std::io;\n"),
        file(
            "high",
            "mod inner;\nuse crate::low::{Low, Lower as L};\npub use self::inner::Inner;\n",
        ),
        file("high::inner", "use crate::low;\n"),
    ];
    assert_eq!(circular(&crates(ladder.clone())["a"]), Vec::<String>::new());
    let mut circle = ladder;
    circle[1].2 = "use crate::high::Inner;\n".to_owned();
    let found = circular(&crates(circle)["a"]);
    assert_eq!(
        found,
        ["high::inner imports low", "low imports high::inner"]
    );
}
