//! The roles of each agent's files, by version, from their paths alone.

use std::path::{Path, PathBuf};

use steno_capture::discovery::{DEPTH_MAX, Home, Origin, Role, SECRETS, may_hold, role_of};
use steno_model::Provider::{Claude, Codex, Copilot, Gemini};
use steno_model::{Provider, Vocabulary as _};

const A: &str = "550e8400-e29b-41d4-a716-446655440000";
const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn home(provider: Provider) -> Home {
    Home { provider, root: PathBuf::from("/h"), origin: Origin::Default }
}

/// Checks the role of a path: `T`ranscript, `S`idecar, s`h`ared with session and project, or `-` for none. `@` is a
/// UUID and `#` a project's hash.
#[track_caller]
fn check(provider: Provider, cases: &[(&str, &str)]) {
    let fill = |text: &str| text.replace('@', A).replace('#', HASH);
    let home = home(provider);
    for (path, want) in cases {
        let path = home.root.join(fill(path));
        let got = match role_of(&home, &path) {
            None => "-".to_owned(),
            Some(place) => {
                let role = match place.role {
                    Role::Transcript => "T",
                    Role::Sidecar => "S",
                    Role::Shared => "h",
                };
                let session = place.session.map_or("-".to_owned(), |key| key.to_string());
                format!("{role} {session} {}", place.project.unwrap_or("-".to_owned()))
            }
        };
        assert_eq!(got, fill(want), "{}", path.display());
        if got != "-" {
            for dir in path.ancestors().skip(1).take_while(|dir| dir.starts_with(&home.root)) {
                assert!(may_hold(&home, dir), "{} is not looked into", dir.display());
            }
        }
    }
}

#[test]
fn claude_sessions_of_each_version_are_classified() {
    check(
        Claude,
        &[
            ("projects/-p/@.jsonl", "T -p/@ -p"),
            ("projects/-p/agent-0a1b2c3d.jsonl", "T -p/agent-0a1b2c3d -p"),
            ("projects/-p/agent-0a1b2c3d.meta.json", "S -p/agent-0a1b2c3d -p"),
            ("projects/-p/@/subagents/agent-a1.jsonl", "T -p/@ -p"),
            ("projects/-p/@/subagents/agent-a1.meta.json", "S -p/@ -p"),
            ("projects/-p/@/subagents/workflows/w1/agent-a2.jsonl", "T -p/@ -p"),
            ("projects/-p/@/subagents/workflows/w1/journal.jsonl", "S -p/@ -p"),
            ("projects/-p/@/tool-results/b1.txt", "S -p/@ -p"),
            ("projects/-p/@/tool-results/agent-b1.jsonl", "S -p/@ -p"),
            ("projects/-p/sessions-index.json", "h - -p"),
            ("projects/-p/memory/MEMORY.md", "h - -p"),
            ("history.jsonl", "h - -"),
            ("todos/@-agent-@.json", "h @ -"),
            ("todos/odd.json", "h - -"),
            ("tasks/@/1.json", "h @ -"),
            ("tasks/team/1.json", "h - -"),
            ("plans/a-plan.md", "h - -"),
            ("file-history/@/1f2e@v1", "h @ -"),
        ],
    );
}

#[test]
fn other_files_of_a_claude_home_have_no_role() {
    let others = [
        ".credentials.json",
        "settings.json",
        "settings.local.json",
        ".claude.json",
        "backups/.claude.json.backup.1",
        "projects/@.jsonl",
        "projects/-p/notes.jsonl",
        "projects/-p/@.jsonl.bak",
        "projects/-p/@/auth.json",
        "projects/-p/@/state.db-wal",
        "projects/-p/drafts/a.jsonl",
        "sessions/4711.json",
        "session-env/@/hook.sh",
        "shell-snapshots/s.sh",
        "paste-cache/1.txt",
        "plugins/x/history.jsonl",
        "debug/@.txt",
    ];
    check(Claude, &others.map(|path| (path, "-")));
}

#[test]
fn codex_threads_of_each_version_are_classified() {
    let time = "2026-06-08T08-14-42";
    let day = "sessions/2026/06/08";
    let thread = format!("T {A} -");
    let rows = [
        (format!("{day}/rollout-{time}-@.jsonl"), thread.clone()),
        (format!("{day}/rollout-{time}-@_{HASH}.jsonl"), thread.clone()),
        (format!("{day}/rollout-{time}-@.jsonl.zst"), thread.clone()),
        (format!("{day}/rollout-{time}-@.jsonl.timers.json"), format!("S {A} -")),
        (format!("sessions/rollout-{time}-@.jsonl"), thread.clone()),
        ("sessions/rollout-2025-05-07-@.json".to_owned(), thread.clone()),
        (format!("archived_sessions/rollout-{time}-@.jsonl"), thread.clone()),
        (format!("archived_sessions/2026/06/08/rollout-{time}-@.jsonl.zst"), thread),
        (format!("{day}/rollout-odd.jsonl"), "T rollout-odd -".to_owned()),
        ("history.jsonl".to_owned(), "h - -".to_owned()),
        ("session_index.jsonl".to_owned(), "h - -".to_owned()),
        (format!("{day}/rollout-{time}-@.jsonl.zst.tmp-1"), "-".to_owned()),
        (format!("{day}/other.jsonl"), "-".to_owned()),
        ("auth.json".to_owned(), "-".to_owned()),
        ("config.toml".to_owned(), "-".to_owned()),
        ("state_5.sqlite".to_owned(), "-".to_owned()),
        ("log/codex-tui.log".to_owned(), "-".to_owned()),
    ];
    let rows: Vec<(&str, &str)> = rows.iter().map(|(path, want)| (path.as_str(), want.as_str())).collect();
    check(Codex, &rows);
}

#[test]
fn gemini_chats_of_each_version_are_classified() {
    check(
        Gemini,
        &[
            ("tmp/#/chats/session-2025-11-03T10-11-550e8400.json", "T #/550e8400 #"),
            ("tmp/web/chats/session-2026-06-08T08-14-550e8400.json", "T web/550e8400 web"),
            ("tmp/web/chats/session-2026-06-08T08-14-550e8400.jsonl", "T web/550e8400 web"),
            ("tmp/web/chats/session-2026-06-08T08-14-550e8400.json.unreadable-17", "S web/550e8400 web"),
            ("tmp/web/chats/session-2026-06-08T08-14-550e8400.jsonl.tmp-17", "-"),
            ("tmp/web/chats/odd.json", "T web/odd web"),
            ("tmp/web/chats/@/@.jsonl", "T web/550e8400 web"),
            ("tmp/web/chats/@/deeper/@.jsonl", "-"),
            ("tmp/web/tool-outputs/session-@/shell_1.txt", "S web/550e8400 web"),
            ("tmp/web/tool-outputs/shell_1.txt", "h - web"),
            ("tmp/web/@/plans/plan.md", "S web/550e8400 web"),
            ("tmp/web/plans/plan.md", "h - web"),
            ("tmp/web/.project_root", "h - web"),
            ("tmp/web/logs.json", "h - web"),
            ("tmp/web/checkpoint-before.json", "h - web"),
            ("projects.json", "h - -"),
            ("tmp/web/shell_history", "-"),
            ("tmp/web/logs/session-@.jsonl", "-"),
            ("tmp/bin/rg", "-"),
            ("oauth_creds.json", "-"),
            ("google_accounts.json", "-"),
            ("settings.json", "-"),
            ("history/web/.git/HEAD", "-"),
        ],
    );
}

#[test]
fn copilot_sessions_of_each_version_are_classified() {
    check(
        Copilot,
        &[
            ("session-state/@/events.jsonl", "T @ -"),
            ("session-state/@/workspace.yaml", "S @ -"),
            ("session-state/@/plan.md", "S @ -"),
            ("session-state/@/checkpoints/index.md", "S @ -"),
            ("session-state/@/rewind-file-snapshots/tracking.json", "S @ -"),
            ("session-state/@/files/settings.json", "S @ -"),
            ("session-state/@/files/events.jsonl", "S @ -"),
            ("session-state/@.jsonl", "T @ -"),
            ("history-session-state/session_@_1760000000000.json", "T @ -"),
            ("command-history-state.json", "-"),
            ("session-state/@/.workspace-fork.lock", "-"),
            ("session-state/@/session.db", "-"),
            ("session-state/@/files/node_modules/a/index.js", "-"),
            ("session-state/@/files/.git/config", "-"),
            ("session-state/.session-operation-locks/@.lock", "-"),
            ("session-state/.hidden/events.jsonl", "-"),
            ("session-store.db", "-"),
            ("config.json", "-"),
            ("mcp-config.json", "-"),
            ("logs/process-1.log", "-"),
        ],
    );
}

#[test]
fn credentials_have_no_role() {
    let session = format!("projects/-p/{A}");
    let dirs =
        ["", "session-state/s", "session-state/s/files", "sessions", "tmp/p/chats", "projects/-p", &session];
    for &provider in Provider::ALL {
        for dir in dirs.map(|dir| Path::new("/h").join(dir)) {
            for path in SECRETS.map(|name| dir.join(name)) {
                assert_eq!(role_of(&home(provider), &path), None, "{provider}: {}", path.display());
            }
        }
    }
}

#[test]
fn directories_without_wanted_files_are_recognized() {
    let none: [(Provider, &[&str]); 4] = [
        (
            Claude,
            &[
                "plugins",
                "shell-snapshots",
                "session-env",
                "projects/-p/x",
                "plans/node_modules",
                "/etc",
                "..",
            ],
        ),
        (Codex, &["log", "skills", "sessions/.git"]),
        (Gemini, &["history", "tmp/bin", "tmp/p/logs", "tmp/p/chats/s/t", "extensions"]),
        (Copilot, &["logs", "ide", "session-state/.locks", "session-state/s/files/node_modules"]),
    ];
    for (provider, dirs) in none {
        for dir in dirs {
            assert!(!may_hold(&home(provider), &Path::new("/h").join(dir)), "{provider}: {dir}");
        }
    }
}

#[test]
fn paths_outside_the_home_have_no_role() {
    let home = home(Copilot);
    for path in [
        "/elsewhere/session-state/s/events.jsonl",
        "session-state/s/events.jsonl",
        "/h/../h/session-state/s.jsonl",
    ] {
        assert_eq!(role_of(&home, Path::new(path)), None, "{path}");
    }
    assert_eq!(role_of(&home, Path::new("/h")), None);
}

#[test]
fn depth_is_limited_for_files_and_directories() {
    let home = home(Copilot);
    let deepest = home.root.join("session-state/s").join(vec!["d"; DEPTH_MAX - 2].join("/"));
    assert!(may_hold(&home, &deepest) && !may_hold(&home, &deepest.join("d")));
    assert!(role_of(&home, &deepest.join("x")).is_some() && role_of(&home, &deepest.join("d/x")).is_none());
}

#[test]
fn session_key_gives_its_id_without_the_project() {
    let key = |provider, path: &str| {
        role_of(&home(provider), &Path::new("/h").join(path)).unwrap().session.unwrap()
    };
    let claude = key(Claude, &format!("projects/-p/{A}.jsonl"));
    assert_eq!((claude.as_str(), claude.id()), (format!("-p/{A}").as_str(), A));
    assert_eq!(key(Claude, &format!("file-history/{A}/x")).id(), A);
    assert_eq!(key(Copilot, "session-state/s/events.jsonl").id(), "s");
}
