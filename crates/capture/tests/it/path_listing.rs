//! Listings of named paths: copies of homes, parts of them, and files of unknown origin.

use std::os::unix::fs::symlink;

use steno_capture::discovery::{PathFile, Role, list_path};

use crate::trees::Tree;

const A: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Checks what is found at a path, as lines of path, role, provider and home; `@` is a UUID.
#[track_caller]
fn check(tree: &Tree, path: &str, want: &[&str]) {
    let found = list_path(&tree.root.join(path.replace('@', A)));
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let got: Vec<String> = found
        .files
        .iter()
        .map(|file| {
            let path = tree.below(file.path()).replace(A, "@");
            match file {
                PathFile::Loose(_) => format!("{path} loose"),
                PathFile::Placed(file) => {
                    let role = match file.place.role {
                        Role::Transcript => "transcript",
                        Role::Sidecar => "sidecar",
                        Role::Shared => "shared",
                    };
                    format!("{path} {role} {} {}", file.provider, tree.below(&file.home))
                }
            }
        })
        .collect();
    assert_eq!(got, want);
}

fn copies() -> Tree {
    let paths = [
        "old/claude/projects/-p/@.jsonl",
        "old/claude/projects/-p/@/tool-results/1.txt",
        "old/claude/projects/-p/memory/MEMORY.md",
        "old/claude/history.jsonl",
        "old/claude/.credentials.json",
        "old/codex/sessions/rollout-x.jsonl.zst",
        "old/gemini/tmp/p/chats/session-t-1.json",
        "old/copilot/session-state/s/events.jsonl",
        "old/copilot/session-state/s/plan.md",
        "old/loose.ndjson",
        "old/readme.md",
        "old/node_modules/a.jsonl",
    ];
    Tree::of(&paths.map(|path| path.replace('@', A)).each_ref().map(String::as_str))
}

#[test]
fn copies_of_homes_are_recognized_by_layout() {
    let want = [
        "old/claude/history.jsonl shared claude old/claude",
        "old/claude/projects/-p/@.jsonl transcript claude old/claude",
        "old/claude/projects/-p/@/tool-results/1.txt sidecar claude old/claude",
        "old/codex/sessions/rollout-x.jsonl.zst transcript codex old/codex",
        "old/copilot/session-state/s/events.jsonl transcript copilot old/copilot",
        "old/copilot/session-state/s/plan.md sidecar copilot old/copilot",
        "old/gemini/tmp/p/chats/session-t-1.json transcript gemini old/gemini",
        "old/loose.ndjson loose",
    ];
    check(&copies(), "old", &want);
}

#[test]
fn part_of_a_home_is_recognized_by_its_parent_directories() {
    let tree = copies();
    let session = "old/claude/projects/-p/@.jsonl transcript claude old/claude";
    let result = "old/claude/projects/-p/@/tool-results/1.txt sidecar claude old/claude";
    check(&tree, "old/claude/projects/-p", &[session, result]);
    check(&tree, "old/claude/projects/-p/@", &[result]);
    check(&tree, "old/claude/projects/-p/@.jsonl", &[session]);
    check(&tree, "old/claude/projects/../projects/-p/@.jsonl", &[session]);
}

#[test]
fn other_files_are_loose_and_a_named_file_is_always_listed() {
    let tree =
        Tree::of(&["projects/app/data.jsonl", "projects/app/notes.txt", "sessions/x.jsonl", "tmp/a/b.json"]);
    check(&tree, "", &["projects/app/data.jsonl loose", "sessions/x.jsonl loose"]);
    check(&tree, "projects/app/notes.txt", &["projects/app/notes.txt loose"]);
    check(&tree, "tmp/a/b.json", &["tmp/a/b.json loose"]);
}

#[test]
fn outermost_home_wins() {
    let tree = Tree::of(&[
        "projects/copy/.claude/projects/-p/agent-1.jsonl",
        "session-state/s/files/sessions/rollout-x.jsonl",
    ]);
    let claude = "projects/copy/.claude/projects/-p/agent-1.jsonl transcript claude projects/copy/.claude";
    let kept = "session-state/s/files/sessions/rollout-x.jsonl sidecar copilot ";
    check(&tree, "", &[claude, kept]);
}

#[test]
fn named_link_is_followed_but_no_link_below_it() {
    let tree = Tree::of(&["real/a.jsonl", "out/b.jsonl"]);
    symlink("real", tree.root.join("link")).unwrap();
    check(&tree, "link", &["real/a.jsonl loose"]);
    symlink(tree.root.join("out"), tree.root.join("real/out")).unwrap();
    symlink(tree.root.join("out/b.jsonl"), tree.root.join("real/b.jsonl")).unwrap();
    let found = list_path(&tree.root.join("link"));
    assert_eq!(found.files.len(), 1);
    let told = found.problems.iter().map(|problem| &*problem.path);
    assert_eq!(tree.all_below(told), ["real/b.jsonl", "real/out"]);
}

#[test]
fn missing_paths_are_reported() {
    let tree = Tree::of(&[]);
    let found = list_path(&tree.root.join("no"));
    assert_eq!((found.files.len(), found.problems.len()), (0, 1));
    assert_eq!(found.problems[0].path, tree.root.join("no"));
}
