//! How long agents keep sessions: settings, their order, and problems of bad ones.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use steno_capture::discovery::{Environment, Home, Retention, RetentionOrigin, retention};
use steno_model::Provider;
use steno_model::Provider::{Claude, Codex, Copilot, Gemini};

use steno_testkit::places::make_pipe;

use crate::trees::Tree;

fn retention_in(tree: &Tree, provider: Provider) -> Retention {
    let mut home: Home = tree.home(provider);
    home.root.push("home");
    let environment =
        Environment { home: None, variables: BTreeMap::new(), system_root: tree.root.join("system") };
    retention(&home, &environment)
}

/// Checks hours and origin for settings files with their content, and a part of each problem.
#[track_caller]
fn check(provider: Provider, files: &[(&str, &str)], want: (Option<u64>, &str), want_problems: &[&str]) {
    let tree = Tree::of(&["home/x"]);
    for (path, content) in files {
        tree.write(path, content);
    }
    let got = retention_in(&tree, provider);
    let set_by = match &got.set_by {
        RetentionOrigin::File(path) => tree.below(path),
        RetentionOrigin::Default => "default".to_owned(),
        RetentionOrigin::Nothing => "nothing".to_owned(),
    };
    let hours = got.kept_for.map(|kept| kept.as_secs() / 3600);
    assert_eq!((hours, set_by.as_str()), want, "{files:?}");
    let problems: Vec<String> = got.problems.iter().map(ToString::to_string).collect();
    let fits = problems.len() == want_problems.len()
        && problems.iter().zip(want_problems).all(|(problem, part)| problem.contains(part));
    assert!(fits, "{files:?}: {problems:?}");
}

const USER: &str = "home/settings.json";
const MANAGED: &str = "system/etc/claude-code/managed-settings.json";
const DROP_IN: &str = "system/etc/claude-code/managed-settings.d";
const SYSTEM: &str = "system/etc/gemini-cli/settings.json";
const SYSTEM_DEFAULTS: &str = "system/etc/gemini-cli/system-defaults.json";

#[test]
fn claude_keeps_thirty_days_by_default() {
    check(Claude, &[], (Some(720), "default"), &[]);
    check(Claude, &[(USER, r#"{"model":"x"}"#)], (Some(720), "default"), &[]);
    check(Claude, &[(USER, r#"{"cleanupPeriodDays":90}"#)], (Some(2160), USER), &[]);
    check(Claude, &[(USER, r#"{"cleanupPeriodDays":0.5}"#)], (Some(12), USER), &[]);
    check(Claude, &[(USER, "\u{feff}{\"cleanupPeriodDays\":1}")], (Some(24), USER), &[]);
    check(Claude, &[(USER, r#"{"cleanupPeriodDays":null}"#)], (Some(720), "default"), &[]);
}

#[test]
fn settings_that_claude_refuses_are_reported() {
    check(
        Claude,
        &[(USER, r#"{"cleanupPeriodDays":0}"#)],
        (Some(0), USER),
        &["to `0`: releases before 2.1.89 delete everything"],
    );
    check(
        Claude,
        &[(USER, r#"{"cleanupPeriodDays":-1}"#)],
        (Some(720), "default"),
        &["not a number of days"],
    );
    check(
        Claude,
        &[(USER, r#"{"cleanupPeriodDays":"9"}"#)],
        (Some(720), "default"),
        &["to `\"9\"`: not a number"],
    );
    check(Claude, &[(USER, "{ // no\n}")], (Some(720), "default"), &["is not JSON"]);
    check(Claude, &[(USER, "")], (Some(720), "default"), &["is not JSON"]);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(1024 * 1024));
    check(Claude, &[(USER, &long)], (Some(720), "default"), &["more than 1048576 bytes"]);
    check(Claude, &[("home/settings.json/x", "")], (Some(720), "default"), &["is not a regular file"]);
}

#[test]
fn managed_settings_of_claude_win() {
    if cfg!(target_os = "macos") {
        steno_testkit::skip!("managed settings lie elsewhere on this system");
    }
    let user = (USER, r#"{"cleanupPeriodDays":90}"#);
    let managed = (MANAGED, r#"{"cleanupPeriodDays":2}"#);
    check(Claude, &[user, managed], (Some(48), MANAGED), &[]);
    check(Claude, &[user, (MANAGED, "{}")], (Some(2160), USER), &[]);
    check(Claude, &[user, (MANAGED, "[")], (Some(2160), USER), &["is not JSON"]);
    let (first, second) = (format!("{DROP_IN}/10-a.json"), format!("{DROP_IN}/20-b.json"));
    let one = (first.as_str(), r#"{"cleanupPeriodDays":3}"#);
    let other = (second.as_str(), r#"{"cleanupPeriodDays":4}"#);
    check(Claude, &[user, managed, one, other], (Some(96), &second), &[]);
    check(
        Claude,
        &[managed, (&format!("{DROP_IN}/99.txt"), r#"{"cleanupPeriodDays":5}"#)],
        (Some(48), MANAGED),
        &[],
    );
}

#[test]
fn gemini_keeps_thirty_days_by_default() {
    let set = |inner: &str| format!(r#"{{"general":{{"sessionRetention":{{{inner}}}}}}}"#);
    let cases = [
        ("", Some(720), "default", ""),
        (r#""enabled":true"#, Some(720), "default", ""),
        (r#""enabled":false,"maxAge":"7d""#, None, USER, ""),
        (r#""maxAge":"7d""#, Some(168), USER, ""),
        (r#""maxAge":"36h" // a day and a half"#, Some(36), USER, ""),
        (r#""maxAge":"2h""#, None, USER, "`minRetention`; nothing is deleted"),
        (r#""maxAge":"2h","minRetention":"1h""#, Some(2), USER, ""),
        (r#""maxAge":30"#, None, USER, "to `30`: not a valid period"),
    ];
    for (inner, hours, set_by, problem) in cases {
        let text = set(&format!("{inner}\n"));
        let problems: Vec<&str> = [problem].into_iter().filter(|problem| !problem.is_empty()).collect();
        check(Gemini, &[(USER, &text)], (hours, set_by), &problems);
    }
    check(Gemini, &[], (Some(720), "default"), &[]);
    check(Gemini, &[(USER, "{,}")], (Some(720), "default"), &["is not JSON"]);
}

#[test]
fn gemini_system_settings_win_over_user_settings_and_defaults() {
    if cfg!(target_os = "macos") {
        steno_testkit::skip!("system settings lie elsewhere on this system");
    }
    let age = |days: u32| format!(r#"{{"general":{{"sessionRetention":{{"maxAge":"{days}d"}}}}}}"#);
    let (one, two, three) = (age(1), age(2), age(3));
    check(Gemini, &[(SYSTEM_DEFAULTS, &one), (USER, &two), (SYSTEM, &three)], (Some(72), SYSTEM), &[]);
    check(Gemini, &[(SYSTEM_DEFAULTS, &one), (USER, &two)], (Some(48), USER), &[]);
    check(Gemini, &[(SYSTEM_DEFAULTS, &one)], (Some(24), SYSTEM_DEFAULTS), &[]);
}

#[test]
fn gemini_can_limit_the_number_of_sessions() {
    let tree = Tree::of(&["home/x"]);
    tree.write(USER, r#"{"general":{"sessionRetention":{"maxCount":50}}}"#);
    let got = retention_in(&tree, Gemini);
    assert_eq!((got.count_max, got.days()), (Some(50), Some(30)));
}

#[test]
fn agents_without_retention_delete_nothing() {
    check(Codex, &[], (None, "nothing"), &[]);
    check(Copilot, &[(USER, r#"{"cleanupPeriodDays":1}"#)], (None, "nothing"), &[]);
}

#[test]
fn pipe_instead_of_settings_does_not_block() {
    let tree = Tree::of(&["home/x"]);
    make_pipe(tree.root.join(USER));
    let got = retention_in(&tree, Claude);
    assert_eq!((got.days(), got.problems.len()), (Some(30), 1));
}

#[test]
fn session_is_due_after_its_period() {
    let modified: Timestamp = "2026-06-08T08:14:42Z".parse().unwrap();
    let keeping = |kept_for| Retention {
        kept_for,
        count_max: None,
        set_by: RetentionOrigin::Default,
        problems: Vec::new(),
    };
    let days = |days: u64| Some(Duration::from_secs(days * 24 * 60 * 60));
    let cases = [
        (days(30), Some("2026-07-08T08:14:42Z")),
        (days(0), Some("2026-06-08T08:14:42Z")),
        (None, None),
        (days(9_999_999_999), None),
        (Some(Duration::MAX), None),
    ];
    for (kept_for, want) in cases {
        let want = want.map(|text| text.parse().unwrap());
        assert_eq!(keeping(kept_for).due(modified), want, "{kept_for:?}");
    }
}
