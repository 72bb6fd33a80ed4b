//! `import` and `watch` with a low limit of open files: everything is recorded, or the reason is reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{RunningSteno, Steno, json, run, wait_until};

/// More than may be open, by far.
const SESSIONS: usize = 200;
/// Subagents in one session's file, each of them a run.
const SIDECHAINS: usize = 40;

/// `steno`, with no more than some files open.
fn limited(steno: &Steno, open_max: u32, args: &[&str]) -> Command {
    // First, because the shell itself opens a file for this.
    let script =
        format!("exec 2>>talk; ulimit -Sn {open_max} && ulimit -Hn {open_max} && exec \"$0\" \"$@\"");
    steno.shell(&script, args)
}

fn talk(steno: &Steno) -> String {
    fs::read_to_string(steno.dir.path().join("talk")).unwrap_or_default()
}

/// A prompt; the rest of the line makes it one of a subagent.
fn prompt(session: usize, number: usize, subagent: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"8d1f0c53-52a4-4b0e-{session:04}-{number:012}",{subagent}"sessionId":"{}","version":"1.0.50","timestamp":"2026-06-08T08:14:42.000Z","message":{{"role":"user","content":"prompt"}}}}"#,
        id(session)
    ) + "\n"
}

fn id(session: usize) -> String {
    format!("2f6b7a10-6d0c-4a53-9f5e-{session:012}")
}

fn file(steno: &Steno, session: usize) -> PathBuf {
    steno.dir.path().join(format!(".claude/projects/-srv-shop/{}.jsonl", id(session)))
}

/// Adds to each session, and to each subagent of one more in turn.
fn add(steno: &Steno, round: usize) {
    fs::create_dir_all(file(steno, 0).parent().unwrap()).unwrap();
    for session in 1..=SESSIONS {
        append(&file(steno, session), &prompt(session, round, ""));
    }
    let mut text = String::new();
    for subagent in 0..SIDECHAINS {
        let parent = if round == 0 {
            "null".to_owned()
        } else {
            format!(r#""8d1f0c53-52a4-4b0e-0000-{subagent:012}""#)
        };
        let said = format!(r#""isSidechain":true,"parentUuid":{parent},"#);
        text.push_str(&prompt(0, round * 1_000 + subagent, &said));
    }
    append(&file(steno, 0), &text);
}

fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// How many prompts each transcript has; the one of a session that has subagents alone has none.
fn prompts(steno: &Steno) -> Vec<usize> {
    let entries = fs::read_dir(steno.store().join("transcripts")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_transcript =
        |path: &PathBuf| path.file_stem().is_some_and(|stem| Path::new(stem).extension().is_none());
    let count = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().filter(|line| line.contains(r#""type":"message.user""#)).count()
    };
    let mut counts: Vec<usize> = paths.filter(is_transcript).map(count).collect();
    counts.sort_unstable();
    counts
}

fn want(each: usize) -> Vec<usize> {
    std::iter::once(0).chain(std::iter::repeat_n(each, SESSIONS + SIDECHAINS)).collect()
}

#[test]
fn import_and_watch_work_with_few_open_files() {
    let steno = Steno::new();
    add(&steno, 0);
    let said = run(limited(&steno, 64, &["import"]), b"");
    assert_eq!((said.code, talk(&steno)), (0, String::new()), "{}", said.out);
    assert_eq!(prompts(&steno), want(1));
    let live = RunningSteno::start(limited(&steno, 64, &["watch"]));
    wait_until("word of it", || talk(&steno).contains("following"));
    add(&steno, 1);
    wait_until("what was added", || prompts(&steno) == want(2));
    live.signal("TERM");
    assert_eq!(live.ended().code, 0);
    let talk = talk(&steno);
    assert!(!talk.contains("WARN") && !talk.contains("not supported yet"), "{talk}");
    let report = json(steno.run(&["import", "--json"]).out.trim());
    assert_eq!((&report["bytes_read"], &report["events"]), (&0.into(), &0.into()));
    assert_eq!((prompts(&steno), steno.run(&["verify"]).code), (want(2), 0));
}

#[test]
fn too_low_file_limit_is_reported_and_loses_nothing() {
    let steno = Steno::new();
    add(&steno, 0);
    let said = run(limited(&steno, 8, &["import"]), b"");
    assert_eq!(said.code, 3, "{}", said.out);
    let talk = talk(&steno);
    assert_eq!(talk.lines().count(), SESSIONS + 1, "{talk}");
    let is_clear =
        |line: &str| line.contains("Too many open files") && line.ends_with("`ulimit -n` raises it");
    assert!(talk.lines().all(is_clear), "{talk}");
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(prompts(&steno), want(1));
    assert_eq!(steno.run(&["verify"]).code, 0);
}
