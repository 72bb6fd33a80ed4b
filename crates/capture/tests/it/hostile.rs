//! Hostile homes: links in circles and out of the home, pipes, directories instead of files.

use std::fs;
use std::os::unix::fs::symlink;

use steno_capture::discovery::{DEPTH_MAX, Listing, files, list_path};
use steno_model::Provider;
use steno_model::Provider::{Claude, Codex, Copilot};
use steno_testkit::places::make_pipe;

use crate::trees::{Tree, paths};

const A: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Checks the files and problems of a listing, as path and reason.
#[track_caller]
fn check(tree: &Tree, provider: Provider, want: &[&str], want_problems: &[(&str, &str)]) -> Listing {
    let listing = files(&tree.home(provider));
    assert_eq!(tree.all_below(paths(&listing.files)), want);
    let problems: Vec<_> =
        listing.problems.iter().map(|problem| (tree.below(&problem.path), problem.why.to_string())).collect();
    let problems: Vec<_> = problems.iter().map(|(path, why)| (path.as_str(), why.as_str())).collect();
    assert_eq!(problems, want_problems);
    listing
}

const LINK: &str = "is a link and is not followed";

#[test]
fn links_in_circles_end() {
    let file = "sessions/2026/rollout-x.jsonl";
    let tree = Tree::of(&[file]);
    symlink(&tree.root, tree.root.join("sessions/2026/again")).unwrap();
    symlink("self", tree.root.join("sessions/self")).unwrap();
    symlink(".", tree.root.join("archived_sessions")).unwrap();
    let by_the_link = "archived_sessions/sessions/2026/rollout-x.jsonl";
    // The well-known directory is followed, and no link below it, so the listing ends.
    let want = [
        ("archived_sessions/archived_sessions", LINK),
        ("archived_sessions/sessions/2026/again", LINK),
        ("sessions/2026/again", LINK),
    ];
    check(&tree, Codex, &[by_the_link, file], &want);
}

#[test]
fn links_out_of_the_home_are_reported_and_not_followed() {
    let tree = Tree::of(&["out/rollout-y.jsonl", "home/sessions/2026/x", "home/logs"]);
    let mut home = tree.home(Codex);
    home.root.push("home");
    symlink(tree.root.join("out"), home.root.join("sessions/2026/06")).unwrap();
    symlink(tree.root.join("out/rollout-y.jsonl"), home.root.join("sessions/rollout-z.jsonl")).unwrap();
    symlink(tree.root.join("out"), home.root.join("elsewhere")).unwrap();
    let listing = files(&home);
    assert_eq!(listing.files, []);
    let told = listing.problems.iter().map(|problem| &*problem.path);
    assert_eq!(tree.all_below(told), ["home/sessions/2026/06", "home/sessions/rollout-z.jsonl"]);
}

#[test]
fn dangling_well_known_links_are_reported() {
    let tree = Tree::of(&[]);
    symlink("/nowhere/at/all", tree.root.join("sessions")).unwrap();
    check(&tree, Codex, &[], &[("sessions", "cannot be read")]);
}

#[test]
fn pipes_and_devices_do_not_block_a_listing() {
    let tree = Tree::of(&["sessions/rollout-c.jsonl/rollout-d.jsonl", "projects/-p/x"]);
    make_pipe(tree.root.join("sessions/rollout-a.jsonl"));
    make_pipe(tree.root.join("sessions/other"));
    let pipe = [("sessions/rollout-a.jsonl", "is not a regular file")];
    check(&tree, Codex, &["sessions/rollout-c.jsonl/rollout-d.jsonl"], &pipe);
    fs::create_dir_all(tree.root.join(format!("projects/-p/{A}.jsonl/x"))).unwrap();
    check(&tree, Claude, &[], &[]);
    let named = list_path(&tree.root.join("sessions/rollout-a.jsonl"));
    assert_eq!((named.files.len(), named.problems.len()), (0, 1));
}

/// Runs something without root's permissions, on a separate thread.
#[cfg(target_os = "linux")]
fn with_no_more_rights_than_others(job: impl FnOnce() + Send) {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let job = || {
        let mut sets = capabilities(None).expect("a thread knows its rights");
        sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, sets).expect("rights can be given up");
        job();
    };
    let done = std::thread::scope(|scope| scope.spawn(job).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[cfg(target_os = "linux")]
#[test]
fn unreadable_directories_do_not_stop_a_listing() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = Tree::of(&["sessions/closed/rollout-a.jsonl", "sessions/open/rollout-b.jsonl"]);
    let closed = tree.root.join("sessions/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    with_no_more_rights_than_others(|| {
        let problems = [("sessions/closed", "cannot be read")];
        let listing = check(&tree, Codex, &["sessions/open/rollout-b.jsonl"], &problems);
        assert!(listing.dirs.contains(&closed), "it is watched for the day that it opens");
    });
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn too_deep_directories_are_reported() {
    let deepest = format!("session-state/s/{}", vec!["d"; DEPTH_MAX - 2].join("/"));
    let tree = Tree::of(&[&format!("{deepest}/x"), &format!("{deepest}/deeper/y")]);
    let why = "is more than 32 directories deep and is not listed";
    check(&tree, Copilot, &[&format!("{deepest}/x")], &[(&format!("{deepest}/deeper"), why)]);
}

#[test]
fn vanished_home_is_reported() {
    let tree = Tree::of(&[]);
    let mut home = tree.home(Codex);
    home.root.push("gone");
    let listing = files(&home);
    assert_eq!(listing.problems.len(), 1);
    assert_eq!(listing.problems[0].path, home.root);
}
