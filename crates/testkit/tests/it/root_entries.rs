//! The root of the repository has the entries that a newcomer expects, and nothing that a command left behind.

use std::collections::BTreeSet;
use std::process::Command;

use steno_testkit::{places, skip};

const ENTRIES: [&str; 19] = [
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "STYLE.md",
    "clippy.toml",
    "crates",
    "docs",
    "fuzz",
    "justfile",
    "rustfmt.toml",
    "scripts",
];

#[test]
fn root_has_only_known_entries() {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(places::workspace_root()).output();
    let files = match git {
        Ok(git) if git.status.success() => String::from_utf8_lossy(&git.stdout).into_owned(),
        Ok(git) => skip!("this is not a Git checkout: {}", String::from_utf8_lossy(&git.stderr).trim()),
        Err(error) => skip!("git does not run: {error}"),
    };
    assert_eq!(entries(&files), BTreeSet::from(ENTRIES));
}

#[test]
fn unknown_directory_is_noticed() {
    let mut files = ENTRIES.map(|entry| format!("{entry}\0")).concat();
    assert_eq!(entries(&files), BTreeSet::from(ENTRIES));
    files.push_str("store/format.json\0");
    assert_ne!(entries(&files), BTreeSet::from(ENTRIES));
}

/// Returns the first part of each path.
fn entries(files: &str) -> BTreeSet<&str> {
    files.split_terminator('\0').filter_map(|path| path.split('/').next()).collect()
}
