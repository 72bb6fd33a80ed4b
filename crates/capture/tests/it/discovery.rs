//! Listings of a home: its files with their metadata, and the directories to watch.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

use steno_capture::discovery::{Role, files, may_hold};
use steno_model::Provider;
use steno_model::Provider::{Claude, Codex, Copilot, Gemini};

use crate::trees::{Tree, paths};

const A: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Checks which files and directories are listed, sorted, and that nothing is wrong. `@` is a UUID.
#[track_caller]
fn check(provider: Provider, present: &[&str], want: &[&str], want_dirs: &[&str]) {
    let fill = |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| path.replace('@', A)).collect() };
    let present = fill(present);
    let tree = Tree::of(&present.iter().map(String::as_str).collect::<Vec<_>>());
    let home = tree.home(provider);
    let listing = files(&home);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    assert_eq!(tree.all_below(paths(&listing.files)), fill(want));
    assert_eq!(tree.all_below(listing.dirs.iter().map(|dir| &**dir)), fill(want_dirs));
    assert!(listing.dirs.iter().all(|dir| may_hold(&home, dir)));
}

#[test]
fn home_is_listed_with_the_directories_to_watch() {
    let present = [
        "projects/-p/@/subagents/agent-1.jsonl",
        "projects/-p/@/subagents/agent-1.meta.json",
        "projects/-p/@.jsonl",
        "projects/-p/sessions-index.json",
        "projects/-q/agent-0.jsonl",
        "todos/@-agent-@.json",
        "history.jsonl",
        ".credentials.json",
        "settings.json",
        "plugins/a/history.jsonl",
        "shell-snapshots/s.sh",
    ];
    let want = [
        "history.jsonl",
        "projects/-p/@.jsonl",
        "projects/-p/@/subagents/agent-1.jsonl",
        "projects/-p/@/subagents/agent-1.meta.json",
        "projects/-p/sessions-index.json",
        "projects/-q/agent-0.jsonl",
        "todos/@-agent-@.json",
    ];
    let dirs =
        ["", "projects", "projects/-p", "projects/-p/@", "projects/-p/@/subagents", "projects/-q", "todos"];
    check(Claude, &present, &want, &dirs);
    let present =
        ["sessions/2026/06/08/rollout-x.jsonl", "archived_sessions/rollout-y.jsonl.zst", "log/z.jsonl"];
    let dirs =
        ["", "archived_sessions", "sessions", "sessions/2026", "sessions/2026/06", "sessions/2026/06/08"];
    check(
        Codex,
        &present,
        &["archived_sessions/rollout-y.jsonl.zst", "sessions/2026/06/08/rollout-x.jsonl"],
        &dirs,
    );
    let present = ["tmp/p/chats/session-x-1.json", "tmp/bin/rg", "tmp/p/logs/l.jsonl", "oauth_creds.json"];
    check(Gemini, &present, &["tmp/p/chats/session-x-1.json"], &["", "tmp", "tmp/p", "tmp/p/chats"]);
    let present = [
        "session-state/s/events.jsonl",
        "session-state/s/session.db",
        "session-state/s/inuse.7.hold",
        "session-state/.l/x",
        "config.json",
    ];
    check(Copilot, &present, &["session-state/s/events.jsonl"], &["", "session-state", "session-state/s"]);
    check(Gemini, &[], &[], &[""]);
}

#[test]
fn metadata_matches_the_file_system() {
    let tree = Tree::of(&[&format!("projects/-p/{A}.jsonl")]);
    let listing = files(&tree.home(Claude));
    let file = &listing.files[0];
    let about = fs::metadata(&file.path).unwrap();
    let stat = file.stat;
    assert_eq!((stat.size_bytes, stat.device, stat.inode), (about.len(), about.dev(), about.ino()));
    assert_eq!(stat.modified.as_second(), about.mtime());
    assert_eq!((file.provider, &file.home, file.place.role), (Claude, &tree.root, Role::Transcript));
}

#[test]
fn link_in_place_of_a_well_known_directory_is_followed() {
    let tree = Tree::of(&["home/x", &format!("disk/-p/{A}.jsonl"), "disk/-p/other.txt"]);
    symlink(tree.root.join("disk"), tree.root.join("home/projects")).unwrap();
    let mut home = tree.home(Claude);
    home.root.push("home");
    let listing = files(&home);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    assert_eq!(tree.all_below(paths(&listing.files)), [format!("home/projects/-p/{A}.jsonl")]);
    assert_eq!(
        tree.all_below(listing.dirs.iter().map(|dir| &**dir)),
        ["home", "home/projects", "home/projects/-p"]
    );
}

#[test]
fn file_names_that_are_not_utf8_are_listed() {
    let tree = Tree::of(&["sessions/x"]);
    let name = OsStr::from_bytes(b"rollout-\xff\xfe.jsonl");
    let path = tree.root.join("sessions").join(name);
    if fs::write(&path, "x").is_err() {
        steno_testkit::skip!("the file system takes no names but UTF-8");
    }
    let listing = files(&tree.home(Codex));
    assert_eq!(paths(&listing.files).collect::<Vec<_>>(), [path]);
}

#[test]
fn ten_thousand_files_are_all_listed() {
    let tree = Tree::of(&[]);
    for project in 0..50 {
        let dir = tree.root.join(format!("projects/-p{project}"));
        fs::create_dir_all(&dir).unwrap();
        for session in 0..200 {
            fs::write(dir.join(format!("550e8400-e29b-41d4-a716-{session:012}.jsonl")), "").unwrap();
        }
    }
    let listing = files(&tree.home(Claude));
    assert_eq!((listing.files.len(), listing.dirs.len(), listing.problems.len()), (10_000, 52, 0));
    assert!(listing.files.is_sorted_by(|one, other| one.path.as_os_str() < other.path.as_os_str()));
}
