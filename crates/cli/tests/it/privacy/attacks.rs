//! Attempts to bypass exclusion, forgetting and skipping, and what must not be lost by these.

use std::fs;

use serde_json::json;

use super::world::{World, append, write};
use super::{assert_absent, assert_present, done};
use crate::app_server::AppServerClient;
use crate::kit::{CommandOutput, Steno, run};

const A: &str = "0a000001-0000-4000-8000-000000000001";
const B: &str = "0b000001-0000-4000-8000-000000000001";
const CANARY: &str = "zq7canary";
const OTHER: &str = "zq7other";

/// A session of Claude Code with one prompt.
fn claude(steno: &Steno, project: &str, id: &str, cwd: &str, text: &str) {
    let record = json!({"type": "user", "uuid": format!("{id}-1"), "sessionId": id, "cwd": cwd, "version": "2.1.150",
        "timestamp": "2026-06-08T08:14:01.000Z", "message": {"role": "user", "content": text}});
    write(&claude_path(steno, project, id), &format!("{record}\n"));
}

fn claude_path(steno: &Steno, project: &str, id: &str) -> std::path::PathBuf {
    steno.dir.path().join(format!(".claude/projects/{project}/{id}.jsonl"))
}

fn import_excluding(steno: &Steno, pattern: &str, args: &[&str]) -> CommandOutput {
    let mut command = steno.command(args);
    command.env("STENO_EXCLUDE_PROJECTS", pattern);
    run(command, b"")
}

#[test]
fn forgotten_session_does_not_come_back_under_another_name() {
    let steno = Steno::new();
    let secret = World::new(&steno, CANARY, 0x5e);
    secret.write();
    done(&steno.run(&["import"]));
    done(&steno.run(&["forget", "--project", &secret.dir, "--yes"]));
    fs::rename(secret.claude_file(), secret.claude_file().with_file_name(format!("{B}.jsonl"))).unwrap();
    fs::rename(secret.codex_file(), secret.codex_file().with_file_name("rollout-backup.jsonl")).unwrap();
    let state = steno.dir.path().join(".copilot/session-state");
    fs::rename(state.join(&secret.copilot), state.join(B)).unwrap();
    let gemini = steno.dir.path().join(".gemini/tmp");
    fs::rename(gemini.join(secret.gemini_name()), gemini.join("renamed")).unwrap();
    // A subagent of former versions, which says its parent's session, and a new plan.
    let agent = json!({"type": "user", "sessionId": secret.claude, "agentId": "d1", "isSidechain": true,
        "message": {"role": "user", "content": format!("{CANARY} later")}});
    write(&steno.dir.path().join(".claude/projects/-src-p/agent-d1.jsonl"), &format!("{agent}\n"));
    write(&steno.dir.path().join(format!(".claude/plans/{CANARY}-plan-agent-x.md")), CANARY);
    done(&steno.run(&["import"]));
    for place in
        ["prompt", "subagent", "later", "codex prompt", "gemini prompt", "copilot prompt", "copilot plan"]
    {
        let text = format!("{CANARY} {place}");
        assert!(!super::is_present(&steno, &text), "{text} is back");
    }
}

#[test]
fn copy_under_another_name_is_forgotten_with_its_session() {
    let steno = Steno::new();
    claude(&steno, "-src-p", A, "/src/p", CANARY);
    done(&steno.run(&["import"]));
    fs::copy(claude_path(&steno, "-src-p", A), claude_path(&steno, "-src-p", B)).unwrap();
    append(&claude_path(&steno, "-src-p", B), "{\"type\":\"x\"}\n");
    done(&steno.run(&["import"]));
    done(&steno.run(&["forget", A, "--yes"]));
    assert_absent(&steno, CANARY, "the copy");
}

#[test]
fn forgetting_one_project_keeps_the_others() {
    let steno = Steno::new();
    // Claude keeps both in one directory.
    claude(&steno, "-src-a-b", A, "/src/a-b", OTHER);
    claude(&steno, "-src-a-b", B, "/src/a/b", CANARY);
    let history = steno.dir.path().join(".claude/history.jsonl");
    append(&history, &format!("{{\"display\":\"{CANARY}\",\"project\":\"/src/a/b\",\"timestamp\":1}}\n"));
    append(&history, "{\"display\":\"zq7same\",\"project\":\"/src/q\",\"timestamp\":1}\n");
    append(&history, "{\"display\":\"zq7same\",\"project\":\"/src/a/b\",\"timestamp\":1}\n");
    done(&steno.run(&["import"]));
    done(&steno.run(&["forget", "--project", "/src/a", "--yes"]));
    assert_absent(&steno, CANARY, "the project");
    assert_present(&steno, OTHER);
    assert_present(&steno, "\"zq7same\",\"project\":\"/src/q\"");
    done(&steno.run(&["verify"]));
}

#[test]
fn project_is_forgotten_under_every_spelling_of_its_directory() {
    for spelled in ["/src//p", "/src/./p", "/src/p/."] {
        let steno = Steno::new();
        claude(&steno, "-src-p", A, "/src/p", CANARY);
        done(&steno.run(&["import"]));
        done(&steno.run(&["forget", "--project", spelled, "--yes"]));
        assert_absent(&steno, CANARY, spelled);
    }
    // By a link, and by a path from here.
    for spelled in ["link", "./real"] {
        let steno = Steno::new();
        let real = steno.dir.path().join("real").canonicalize().or_else(|_| {
            fs::create_dir(steno.dir.path().join("real"))?;
            steno.dir.path().join("real").canonicalize()
        });
        let real = real.unwrap();
        std::os::unix::fs::symlink(&real, steno.dir.path().join("link")).unwrap();
        claude(&steno, "-any", A, &real.display().to_string(), CANARY);
        done(&steno.run(&["import"]));
        let said = steno.dir.path().join(spelled).display().to_string();
        let given = if spelled == "link" { said } else { spelled.to_owned() };
        done(&steno.run(&["forget", "--project", &given, "--yes"]));
        assert_absent(&steno, CANARY, spelled);
    }
}

#[test]
fn two_projects_in_one_claude_directory_are_separate() {
    let steno = Steno::new();
    claude(&steno, "-src-secret-plans", A, "/src/secret-plans", OTHER);
    claude(&steno, "-src-secret-plans", B, "/src/secret/plans", CANARY);
    done(&import_excluding(&steno, "/src/secret", &["import"]));
    assert_absent(&steno, CANARY, "below the excluded one");
    assert_present(&steno, OTHER);
}

#[test]
fn files_of_unknown_projects_are_skipped_while_projects_are_excluded() {
    let steno = Steno::new();
    let exec = format!(
        "{{\"type\":\"thread.started\",\"thread_id\":\"{A}\"}}\n{{\"type\":\"x\",\"t\":\"{CANARY}\"}}\n"
    );
    write(&steno.dir.path().join("loose/out.jsonl"), &exec);
    let said = import_excluding(&steno, "/src/secret", &["import", "loose"]);
    done(&said);
    assert!(said.out.contains("the project is not known"), "{}", said.out);
    assert_absent(&steno, CANARY, "loose");
    done(&steno.run(&["import", "loose"]));
    assert_present(&steno, CANARY);
}

#[test]
fn project_comes_from_the_session_not_its_description() {
    for cwd in [">-\n  /src/secret", "", "null", "\"\\x2fsrc\"", "/src/public"] {
        let steno = Steno::new();
        let session = steno.dir.path().join(format!(".copilot/session-state/{A}"));
        let start =
            json!({"type": "session.start", "data": {"sessionId": A, "context": {"cwd": "/src/secret"}}});
        write(&session.join("events.jsonl"), &format!("{start}\n{{\"type\":\"x\",\"t\":\"{CANARY}\"}}\n"));
        write(&session.join("workspace.yaml"), &format!("id: {A}\ncwd: {cwd}\n"));
        done(&import_excluding(&steno, "/src/secret", &["import"]));
        assert_absent(&steno, CANARY, cwd);
    }
}

#[test]
fn messages_with_excluded_threads_or_paths_are_left_out() {
    let steno = Steno::new();
    let server = format!(
        r#"while IFS= read -r line; do case "$line" in
        *newConversation*) printf '{{"id":1,"result":{{"conversationId":"{A}"}}}}\n' ;;
        *) printf '{{"id":2,"result":{{"content":"{CANARY} answer"}}}}\n' ;; esac; done"#
    );
    let mut command = steno.command(&["app-server", "--", "sh", "-c", &server]);
    command.env("STENO_EXCLUDE_PROJECTS", "/src/secret");
    let mut connected = AppServerClient::of(command);
    for line in [
        r#"{"method":"newConversation","id":1,"params":{"cwd":"/src/secret"}}"#.to_owned(),
        format!(
            r#"{{"method":"sendUserMessage","id":2,"params":{{"conversationId":"{A}","t":"{CANARY}"}}}}"#
        ),
        format!(r#"{{"method":"fs/readFile","id":2,"params":{{"path":"/src/secret/{CANARY}"}}}}"#),
        format!(r#"{{"method":"skills/list","id":2,"params":{{"cwds":["/src/secret/{CANARY}"]}}}}"#),
        format!(r#"{{"method":"turn/start","id":2,"params":{{"threadId":"{B}","t":"{CANARY}"}}}}"#),
    ] {
        connected.say(&line);
        connected.hear();
    }
    connected.end();
    assert_absent(&steno, CANARY, "any field");
}

#[test]
fn skipping_pause_survives_the_next_pause() {
    let steno = Steno::new();
    claude(&steno, "-src-p", "0d000001-0000-4000-8000-000000000001", "/src/p", "first");
    done(&steno.run(&["import"]));
    done(&steno.run(&["pause", "--skip", "--for", "1h"]));
    claude(&steno, "-src-p", A, "/src/p", CANARY);
    let file = steno.store().join("paused");
    let text = fs::read_to_string(&file).unwrap();
    let now = jiff::Timestamp::now();
    let (before, after) = text.split_once("\"until\":\"").unwrap();
    fs::write(&file, format!("{before}\"until\":\"{now}\"{}", after.split_once('"').unwrap().1)).unwrap();
    // Made after the pause was over, as far as the system says when a file was made.
    let made = || fs::metadata(claude_path(&steno, "-src-p", B)).ok()?.created().ok();
    let later = std::time::SystemTime::now() + std::time::Duration::from_millis(200);
    loop {
        claude(&steno, "-src-p", B, "/src/p", OTHER);
        if made().is_none_or(|made| made >= later) {
            break;
        }
        fs::remove_file(claude_path(&steno, "-src-p", B)).unwrap();
    }
    done(&steno.run(&["pause"]));
    done(&steno.run(&["resume"]));
    done(&steno.run(&["import"]));
    assert_absent(&steno, CANARY, "skipped");
    if made().is_some() {
        assert_present(&steno, OTHER);
    }
}

#[test]
fn file_moved_in_with_an_old_time_is_skipped_too() {
    let steno = Steno::new();
    done(&steno.run(&["pause", "--skip"]));
    claude(&steno, "-src-p", A, "/src/p", CANARY);
    let file = fs::File::options().write(true).open(claude_path(&steno, "-src-p", A)).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    done(&steno.run(&["resume"]));
    done(&steno.run(&["import"]));
    assert_absent(&steno, CANARY, "an old time");
}

#[test]
fn next_import_deletes_what_a_killed_forget_left() {
    let steno = Steno::new();
    claude(&steno, "-src-p", A, "/src/p", CANARY);
    done(&steno.run(&["import"]));
    let transcript = fs::read(steno.transcript(A)).unwrap();
    done(&steno.run(&["forget", A, "--yes"]));
    // As if it had been killed before the run was deleted.
    fs::write(steno.transcript(A), transcript).unwrap();
    let path = steno.store().join("vault/forgotten.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let name = steno_vault::NameHash::of_session(A).to_string();
    let object = format!("{{\"run_due\":{{\"run\":\"{name}\"}}");
    let sum = super::forgetting::crc32(object.as_bytes());
    fs::write(&path, format!("{text}{object},\"crc\":\"{sum:08x}\"}}\n")).unwrap();
    done(&steno.run(&["import"]));
    assert_absent(&steno, CANARY, "a killed forget");
}
