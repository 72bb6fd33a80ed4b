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
    let found: BTreeSet<&str> =
        files.split_terminator('\0').filter_map(|path| path.split('/').next()).collect();
    let known: BTreeSet<&str> = ENTRIES.into_iter().collect();
    assert_eq!(found, known);
}
