//! Each link of the documentation leads to an existing page and heading.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use e2e::project::{root, tracked_files};

/// Lines that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of the headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let kept = line.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    });
    anchors.collect()
}

/// The targets of all links and pictures, except those on other sites.
fn targets(text: &str) -> Vec<String> {
    let text: String = prose(text).flat_map(|line| [line, "\n"]).collect();
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|link| link.split_once(')').map(|(target, _)| target.trim()));
    targets
        .filter(|target| !target.contains("://") && !target.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `docs/a/../b` is `docs/b`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
        path
    })
}

fn documents() -> BTreeMap<PathBuf, String> {
    let files = tracked_files(Some("md")).into_iter();
    files.map(|file| (file.path, file.text)).collect()
}

/// Catches: a page or a heading that got another name.
#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    let mut broken = Vec::new();
    for (path, text) in &documents {
        for target in targets(text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let to = match file {
                "" => path.clone(),
                file => plain(&path.with_file_name(file)),
            };
            let leads = match documents.get(&to) {
                Some(text) => anchor.is_empty() || anchors(text).contains(anchor),
                None => anchor.is_empty() && root().join(&to).exists(),
            };
            if !leads {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Catches: a page that is missing from the contents, and a link that leads out of the site.
#[test]
fn every_page_is_in_the_contents_and_links_to_pages_only() {
    let documents = documents();
    let summary = Path::new("docs/SUMMARY.md");
    let pages: BTreeSet<_> = targets(&documents[summary])
        .iter()
        .map(|page| summary.with_file_name(page))
        .collect();
    let docs = documents
        .keys()
        .filter(|path| path.starts_with("docs") && *path != summary);
    assert_eq!(docs.cloned().collect::<BTreeSet<_>>(), pages);
    let mut outside = Vec::new();
    for page in &pages {
        for target in targets(&documents[page]) {
            let (file, _) = target.split_once('#').unwrap_or((&target, ""));
            let to = plain(&page.with_file_name(file));
            if !file.is_empty() && !to.starts_with("docs") {
                outside.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(
        outside.is_empty(),
        "say https://github.com/..: {outside:#?}"
    );
}
