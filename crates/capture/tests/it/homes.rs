//! Finding homes: by variables, by defaults, each once, and problems of missing ones.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use steno_capture::discovery::{Environment, Origin, database, files, homes};
use steno_model::Provider::{Claude, Codex, Copilot, Gemini, OpenCode};
use steno_model::Vocabulary as _;

use crate::trees::Tree;

/// The origin of a default home.
const DEFAULT: &str = "default";

/// Checks which homes and problems are found in a tree that has a user's directory `me`. Values of variables have `@`
/// for the tree.
#[track_caller]
fn check(
    tree: &Tree,
    variables: &[(&'static str, &str)],
    want: &[(&str, &str, &str)],
    want_problems: &[&str],
) {
    let root = tree.root.to_str().expect("a path for tests is text");
    let value = |text: &str| text.replace('@', root).into();
    let variables: BTreeMap<_, _> = variables.iter().map(|(name, text)| (*name, value(text))).collect();
    let environment =
        Environment { home: Some(tree.root.join("me")), variables, system_root: tree.root.clone() };
    let found = homes(&environment);
    let got: Vec<_> = found
        .found
        .iter()
        .map(|home| {
            let origin = match home.origin {
                Origin::Variable(name) => name,
                Origin::Default => DEFAULT,
                Origin::NamedPath => "given",
            };
            (home.provider.as_str(), tree.below(&home.root), origin)
        })
        .collect();
    let got: Vec<_> = got.iter().map(|(name, path, origin)| (*name, path.as_str(), *origin)).collect();
    let problems: Vec<_> =
        found.problems.iter().map(|problem| problem.to_string().replace(root, "@")).collect();
    assert_eq!(got, want);
    assert_eq!(problems, want_problems);
}

#[test]
fn default_homes_are_found() {
    let tree = Tree::of(&[
        "me/.claude/x",
        "me/.config/claude/x",
        "me/.codex/x",
        "me/.gemini/x",
        "me/.copilot/x",
        "me/.local/share/opencode/x",
    ]);
    let all = [
        ("claude", "me/.claude", DEFAULT),
        ("claude", "me/.config/claude", DEFAULT),
        ("codex", "me/.codex", DEFAULT),
        ("gemini", "me/.gemini", DEFAULT),
        ("copilot", "me/.copilot", DEFAULT),
        ("opencode", "me/.local/share/opencode", DEFAULT),
    ];
    check(&tree, &[], &all, &[]);
    check(&Tree::of(&["me/.claude", "me/.codex/x"]), &[], &[("codex", "me/.codex", DEFAULT)], &[]);
    check(&Tree::of(&[]), &[("CODEX_HOME", "")], &[], &[]);
}

#[test]
fn variables_add_to_the_defaults() {
    let tree = Tree::of(&[
        "me/.codex/x",
        "other/x",
        "g/.gemini/x",
        "config/claude/x",
        "state/.copilot/x",
        "c/x",
        "data/opencode/x",
    ]);
    let variables = [
        ("CODEX_HOME", "@/other"),
        ("GEMINI_CLI_HOME", "@/g"),
        ("COPILOT_HOME", "@/c"),
        ("XDG_CONFIG_HOME", "@/config"),
        ("XDG_DATA_HOME", "@/data"),
        ("XDG_STATE_HOME", "@/state"),
    ];
    let want = [
        ("claude", "config/claude", "XDG_CONFIG_HOME"),
        ("codex", "other", "CODEX_HOME"),
        ("codex", "me/.codex", DEFAULT),
        ("gemini", "g/.gemini", "GEMINI_CLI_HOME"),
        ("copilot", "c", "COPILOT_HOME"),
        ("copilot", "state/.copilot", "XDG_STATE_HOME"),
        ("opencode", "data/opencode", "XDG_DATA_HOME"),
    ];
    check(&tree, &variables, &want, &[]);
}

#[test]
fn list_of_directories_in_a_variable_is_split() {
    let tree = Tree::of(&["a/x", "b/x", "c,d/x"]);
    let variable = "CLAUDE_CONFIG_DIR";
    let (a, b) = (("claude", "a", variable), ("claude", "b", variable));
    check(&tree, &[(variable, "@/a, @/b,,")], &[a, b], &[]);
    check(&tree, &[(variable, "@/b,@/b/../a,@/a")], &[b, a], &[]);
    check(&tree, &[(variable, "@/c,d")], &[("claude", "c,d", variable)], &[]);
    let missing = "`@/no` is named by `CLAUDE_CONFIG_DIR` and does not exist";
    check(&tree, &[(variable, "@/a,@/no")], &[a], &[missing]);
}

#[test]
fn home_named_twice_is_found_once() {
    let tree = Tree::of(&["me/.claude/x", "me/.config/other"]);
    symlink(tree.root.join("me/.claude"), tree.root.join("me/.config/claude")).unwrap();
    let variable = "CLAUDE_CONFIG_DIR";
    check(&tree, &[(variable, "@/me/.config/claude")], &[("claude", "me/.claude", variable)], &[]);
}

#[test]
fn variables_that_name_missing_homes_are_reported() {
    let tree = Tree::of(&["file"]);
    fs::create_dir_all(tree.root.join("state")).unwrap();
    let variables = [
        ("CODEX_HOME", "@/no"),
        ("GEMINI_CLI_HOME", "@/file"),
        ("COPILOT_HOME", "@/file"),
        ("XDG_STATE_HOME", "@/state"),
        ("XDG_CONFIG_HOME", "relative"),
    ];
    let problems = [
        "`@/no` is named by `CODEX_HOME` and does not exist",
        "`@/file/.gemini` is named by `GEMINI_CLI_HOME` and does not exist",
        "`@/file` is named by `COPILOT_HOME` and is not a directory",
    ];
    check(&tree, &variables, &[], &problems);
}

#[test]
fn database_of_an_agent_is_named_and_not_listed() {
    let tree = Tree::of(&["me/.local/share/opencode/opencode.db", "me/.codex/opencode.db"]);
    let environment = Environment {
        home: Some(tree.root.join("me")),
        variables: BTreeMap::new(),
        system_root: tree.root.clone(),
    };
    let found = homes(&environment).found;
    assert_eq!(found.len(), 2);
    let databases: Vec<_> = found.iter().map(|home| database(home).map(|path| tree.below(&path))).collect();
    assert_eq!(databases, [None, Some("me/.local/share/opencode/opencode.db".to_owned())]);
    assert!(found.iter().all(|home| files(home).files.is_empty()));
}

#[test]
fn only_known_variables_are_looked_up() {
    let asked = std::cell::RefCell::new(Vec::new());
    let environment = Environment::from_lookup(None, |name| {
        asked.borrow_mut().push(name.to_owned());
        (name == "CODEX_HOME").then(|| "/nowhere/at/all".into())
    });
    assert_eq!(asked.into_inner(), Environment::VARIABLES);
    assert_eq!(environment.variables, BTreeMap::from([("CODEX_HOME", "/nowhere/at/all".into())]));
    let found = homes(&environment);
    assert_eq!((found.found.len(), found.problems.len()), (0, 1));
    assert_eq!(found.problems[0].path, PathBuf::from("/nowhere/at/all"));
}

#[test]
fn providers_have_a_name_and_a_title() {
    let names =
        [Claude, Codex, Gemini, Copilot, OpenCode].map(|provider| (provider.to_string(), provider.title()));
    let want = [
        ("claude", "Claude Code"),
        ("codex", "Codex"),
        ("gemini", "Gemini CLI"),
        ("copilot", "Copilot CLI"),
        ("opencode", "OpenCode"),
    ];
    assert_eq!(names, want.map(|(name, title)| (name.to_owned(), title)));
}
