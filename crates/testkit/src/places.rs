//! Finds the workspace's root, its source files and their text.
//!
//! The files are found by walking, not by asking git: the tests also run from an unpacked archive, and a file
//! that is about to be added is judged like one that already was.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The hidden directories that hold sources of ours; all others belong to tools.
const HIDDEN_BUT_OURS: [&str; 3] = [".cargo", ".ci", ".github"];

/// Returns the directory that holds the workspace's `Cargo.toml`.
///
/// # Panics
/// If there is none above the crate under test.
#[must_use]
pub fn workspace_root() -> PathBuf {
    // Cargo's answer at run time comes first: two checkouts that share a target directory share this binary, and the
    // path compiled into it is that of the first build.
    let current = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let start = current.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    match root_above(&start) {
        Some(root) => root.to_path_buf(),
        None => panic!("`{}` lies in no workspace", start.display()),
    }
}

/// Lists every file of the workspace, build output left out, sorted, relative to the root and with `/` between
/// the parts.
///
/// # Panics
/// If a directory cannot be read or a name is not UTF-8.
#[must_use]
pub fn files() -> Vec<String> {
    files_below(&workspace_root())
}

/// Makes a named pipe. The program `mkfifo` does it: macOS has no `mknodat`.
///
/// # Panics
/// If it cannot be made.
pub fn make_pipe(path: impl AsRef<Path>) {
    let path = path.as_ref();
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "cannot make the pipe `{}`", path.display());
}

/// Reads a text file, given relative to the workspace's root.
///
/// # Panics
/// If the file cannot be read or is not UTF-8; the message names it.
#[must_use]
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = workspace_root().join(path);
    match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => panic!("cannot read `{}`: {error}", path.display()),
    }
}

/// Reads a file as it is, given relative to the workspace's root.
///
/// # Panics
/// If the file cannot be read; the message names it.
#[must_use]
#[track_caller]
pub fn read_bytes(path: impl AsRef<Path>) -> Vec<u8> {
    let path = workspace_root().join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

fn root_above(start: &Path) -> Option<&Path> {
    start.ancestors().find(|directory| {
        let manifest = fs::read_to_string(directory.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    })
}

/// Lists every file below a directory as [`files`] lists those of the workspace, relative to that directory.
///
/// # Panics
/// If a directory cannot be read or a name is not UTF-8.
#[must_use]
pub fn files_below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let listing = fs::read_dir(&directory);
        let listing =
            listing.unwrap_or_else(|error| panic!("cannot list `{}`: {error}", directory.display()));
        for item in listing {
            let item = item.unwrap_or_else(|error| panic!("cannot list `{}`: {error}", directory.display()));
            let kind = item.file_type().expect("a listed file has a type");
            if kind.is_dir() && is_ours(&item.path()) {
                directories.push(item.path());
            } else if kind.is_file() {
                found.push(relative(root, &item.path()));
            }
        }
    }
    found.sort();
    found
}

/// Tells whether a directory has sources. Cargo marks its build directories with `CACHEDIR.TAG`.
fn is_ours(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&&*name);
    !hidden && name != "target" && !directory.join("CACHEDIR.TAG").exists()
}

fn relative(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).expect("the walk stays below its root");
    let parts: Vec<&str> = inside
        .components()
        .map(|part| part.as_os_str().to_str())
        .collect::<Option<_>>()
        .unwrap_or_else(|| panic!("`{}` is not UTF-8", path.display()));
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_finds_sources_and_leaves_out_what_tools_wrote() {
        let root = tempfile::tempdir().unwrap();
        let paths = [
            "Cargo.toml",
            ".ci/run",
            ".git/HEAD",
            ".idea/notes.md",
            "crates/a/src/lib.rs",
            "target/debug/made.rs",
            "elsewhere/CACHEDIR.TAG",
            "elsewhere/debug/made.rs",
        ];
        for path in paths {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(files_below(root.path()), [".ci/run", "Cargo.toml", "crates/a/src/lib.rs"]);
    }

    #[test]
    fn root_is_the_nearest_workspace_above() {
        let top = tempfile::tempdir().unwrap();
        let member = top.path().join("crates/a");
        fs::create_dir_all(&member).unwrap();
        fs::write(member.join("Cargo.toml"), "[package]\n").unwrap();
        assert_eq!(root_above(&member), None);
        fs::write(top.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        assert_eq!(root_above(&member), Some(top.path()));
    }

    #[test]
    fn this_file_is_among_the_files() {
        assert!(files().iter().any(|path| path == "crates/testkit/src/places.rs"));
        assert!(read("crates/testkit/src/places.rs").starts_with("//! Finds the workspace"));
    }
}
