//! Links in documents: each leads to a file of the tree, and one with `#` to a heading in it.

use std::path::Path;

use steno_testkit::places;

#[test]
fn links_in_documents_lead_to_files_and_headings() {
    let files = places::files();
    let read = |path: &str| files.iter().any(|file| file == path).then(|| places::read(path));
    let is_there = |path: &str| path.is_empty() || files.iter().any(|file| is_at_or_below(file, path));
    let is_bytes = |path: &String| path.contains("/fixtures/") || path.contains("/golden/");
    let is_document = |path: &&String| {
        Path::new(path.as_str()).extension().is_some_and(|kind| kind == "md") && !is_bytes(path)
    };
    let mut count = 0;
    let mut broken = Vec::new();
    for path in files.iter().filter(is_document) {
        let text = places::read(path);
        count += links(&text).len();
        broken.extend(broken_links(path, &text, &is_there, &read));
    }
    assert!(count > 100, "{count} links were found");
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn broken_links_are_found() {
    let read = |path: &str| (path == "docs/b.md").then(|| "# B\n## What `steno` does, and when\n".to_owned());
    let is_there = |path: &str| ["docs/b.md", "docs"].contains(&path);
    for (text, want) in [
        ("[b](b.md), [up](../docs), [out](https://example.com)", &[][..]),
        ("[b](b.md#what-steno-does-and-when), ![picture](b.md)", &[]),
        ("```\n[b](c.md)\n```\n`[b](c.md)`", &[]),
        ("[b](c.md)", &["docs/a.md: no `c.md`"]),
        ("[b](b.md#when)", &["docs/a.md: no `b.md#when`"]),
        ("[b](#here)\n# There", &["docs/a.md: no `#here`"]),
        ("# Here\n[b](#here)", &[]),
    ] {
        assert_eq!(broken_links("docs/a.md", text, &is_there, &read), want, "{text}");
    }
}

/// Returns a line for each link of a document that leads nowhere. Links to other sites are not followed.
fn broken_links(
    path: &str,
    text: &str,
    is_there: &dyn Fn(&str) -> bool,
    read: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut broken = Vec::new();
    for link in links(text).into_iter().filter(|link| !link.contains("://")) {
        let (file, anchor) =
            link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
        let target = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
        let has_heading = |anchor: &str| {
            let text = if file.is_empty() { Some(text.to_owned()) } else { read(&target) };
            text.is_some_and(|text| text.lines().any(|line| line.starts_with('#') && slug(line) == anchor))
        };
        let leads_there = (file.is_empty() || is_there(&target)) && anchor.is_none_or(has_heading);
        if !leads_there {
            broken.push(format!("{path}: no `{link}`"));
        }
    }
    broken
}

/// Returns the targets of the links in a document, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let words: Vec<&str> = line.split('`').collect();
        // A link may have code in its text; what it leads to is never code.
        let plain: String = words.iter().step_by(2).copied().collect();
        let targets = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        links.extend(targets.map(str::to_owned));
    }
    links
}

/// Returns a path that is relative to a document as one that is relative to the root.
fn resolve(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => {
                parts.pop();
            }
            "" | "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_at_or_below(file: &str, path: &str) -> bool {
    file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the name by which links know a heading: small letters, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}
