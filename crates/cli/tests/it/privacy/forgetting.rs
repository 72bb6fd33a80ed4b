//! `steno forget`, by run, by project and by age.

use std::fs;

use super::world::{World, append};
use super::{PUBLIC, SECRET, assert_absent, assert_whole, copy_dir, done};
use crate::app_server::AppServerClient;
use crate::kit::{Steno, wait_until};

/// A session to be forgotten, another one in the same project, and one of another project.
fn filled(steno: &Steno) -> (World, World) {
    let public = World::new(steno, PUBLIC, 0xab);
    public.write();
    let secret = World::new(steno, SECRET, 0x5e);
    secret.write();
    done(&steno.run(&["import"]));
    assert_whole(steno, SECRET);
    assert_whole(steno, PUBLIC);
    (secret, public)
}

/// Tries to archive forgotten sessions again with every command that must not.
fn try_again(steno: &Steno, secret: &World) {
    done(&steno.run(&["import"]));
    // Copies, of homes and of single files.
    let here = steno.dir.path();
    for agent in [".claude", ".codex", ".gemini", ".copilot"] {
        copy_dir(&here.join(agent), &here.join("backup").join(agent));
    }
    done(&steno.run(&["import", "backup"]));
    fs::create_dir_all(here.join("loose")).unwrap();
    fs::copy(secret.claude_file(), here.join("loose/one.jsonl")).unwrap();
    fs::copy(secret.codex_file(), here.join("loose/two.jsonl")).unwrap();
    fs::copy(here.join(".claude/history.jsonl"), here.join("loose/history.jsonl")).unwrap();
    steno.run(&["import", "loose"]);
    // The file is rewritten, grows, and is moved while a process follows.
    let mut live = steno.start(&["watch"]);
    live.line();
    let file = secret.claude_file();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.lines().rev().collect::<Vec<_>>().join("\n") + "\n").unwrap();
    append(&file, text.lines().next().unwrap());
    append(
        &secret.codex_file(),
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"user_message\",\"message\":\"zq7secret again\"}}\n",
    );
    let sub = file.with_extension("").join("subagents/agent-d4e5f6.jsonl");
    fs::write(sub, text).unwrap();
    let mark = World::new(steno, "zq7mark", 0x11);
    mark.write();
    wait_until("what follows", || steno.transcript(&mark.claude).is_file());
    live.signal("INT");
    done(&live.ended());
    // The thread continues over a connection, which repeats all of it.
    let server = format!(
        r#"while IFS= read -r line; do printf '{{"id":1,"result":{{"thread":{{"id":"{}","turns":["{SECRET} told again"]}}}}}}\n'; done"#,
        secret.codex
    );
    let mut connected = AppServerClient::begin(steno, &["sh", "-c", &server]);
    connected
        .say(&format!(r#"{{"method":"thread/resume","id":1,"params":{{"threadId":"{}"}}}}"#, secret.codex));
    assert!(connected.hear().contains("told again"));
    connected.end();
    let said = steno.run(&["spine", "record", &secret.codex_file().display().to_string()]);
    assert_eq!(said.code, 1, "{said:?}");
}

#[track_caller]
fn check(forget: impl FnOnce(&Steno, &World)) {
    let steno = Steno::new();
    let (secret, _) = filled(&steno);
    forget(&steno, &secret);
    assert_absent(&steno, SECRET, "forgotten");
    assert_whole(&steno, PUBLIC);
    let tombstones = fs::read_to_string(steno.store().join("vault/forgotten.jsonl")).unwrap();
    for name in [&secret.claude, &secret.codex, &secret.gemini, &secret.copilot] {
        assert!(!tombstones.contains(name.as_str()), "{tombstones}");
    }
    done(&steno.run(&["verify"]));
    try_again(&steno, &secret);
    assert_absent(&steno, SECRET, "archived again");
    assert_whole(&steno, PUBLIC);
    done(&steno.run(&["verify"]));
}

#[test]
fn forgotten_session_is_not_stored_and_does_not_come_back() {
    check(|steno, secret| {
        for session in [&secret.claude, &secret.codex, &secret.gemini[..8].to_owned(), &secret.copilot] {
            done(&steno.run(&["forget", session, "--yes"]));
        }
        // Files of the project that belong to no session: its notes, and Gemini's name of it.
        done(&steno.run(&["forget", "--project", &secret.dir, "--yes"]));
    });
}

#[test]
fn forgotten_project_is_not_stored_and_does_not_come_back() {
    check(|steno, secret| done(&steno.run(&["forget", "--project", &secret.dir, "--yes"])));
}

#[test]
fn sessions_forgotten_by_age_do_not_come_back() {
    let steno = Steno::new();
    let public = World::new(&steno, PUBLIC, 0xab);
    public.write();
    let mut secret = World::new(&steno, SECRET, 0x5e);
    // A project is older than its sessions.
    secret.dir = "/src/old".to_owned();
    secret.write();
    secret.make_old();
    done(&steno.run(&["import"]));
    assert_whole(&steno, SECRET);
    done(&steno.run(&["forget", "--older-than", "365d", "--yes"]));
    assert_absent(&steno, SECRET, "forgotten by age");
    assert_whole(&steno, PUBLIC);
    secret.make_old();
    done(&steno.run(&["import"]));
    assert_absent(&steno, SECRET, "archived again");
    done(&steno.run(&["verify"]));
}

#[test]
fn other_sessions_of_the_project_are_kept() {
    let steno = Steno::new();
    let (secret, _) = filled(&steno);
    let mut other = secret.beside(0x77, "zq7other");
    other.dir.clone_from(&secret.dir);
    other.write();
    done(&steno.run(&["import"]));
    done(&steno.run(&["forget", &secret.claude, "--yes"]));
    assert_whole(&steno, "zq7other");
    // Everything that Claude wrote about it is deleted.
    for place in
        [" prompt", "-command", " title", " subagent", " tool result", " todo", " task", " plan", " typed"]
    {
        assert_absent_text(&steno, &format!("{SECRET}{place}"));
    }
    done(&steno.run(&["import"]));
    for place in [" prompt", " title", " typed", " todo"] {
        assert_absent_text(&steno, &format!("{SECRET}{place}"));
    }
    // The user wants it back.
    done(&steno.run(&["import", "--again", &secret.claude_file().display().to_string()]));
    super::assert_present(&steno, &format!("{SECRET} prompt"));
}

#[track_caller]
fn assert_absent_text(steno: &Steno, text: &str) {
    let places = super::scan::places_of(&steno.store(), text);
    assert!(places.is_empty(), "`{text}` is in {places:?}");
}

#[test]
fn forget_is_complete_while_another_process_follows() {
    let steno = Steno::new();
    let public = World::new(&steno, PUBLIC, 0xab);
    public.write();
    let mut live = steno.start(&["watch"]);
    live.line();
    let secret = World::new(&steno, SECRET, 0x5e);
    secret.write();
    for place in super::PLACES {
        wait_until(place, || super::is_present(&steno, &format!("{SECRET}{place}")));
    }
    wait_until("the name of the project", || super::is_present(&steno, &secret.gemini_name()));
    done(&steno.run(&["pause"]));
    done(&steno.run(&["forget", "--project", &secret.dir, "--yes"]));
    assert_absent(&steno, SECRET, "while somebody follows");
    done(&steno.run(&["resume"]));
    let after = World::new(&steno, "zq7after", 0x33);
    after.write();
    wait_until("what comes later", || super::is_present(&steno, "zq7after todo"));
    live.signal("INT");
    done(&live.ended());
    assert_absent(&steno, SECRET, "afterwards");
    assert_whole(&steno, PUBLIC);
}

#[test]
fn tombstones_of_older_versions_lose_their_names() {
    let steno = Steno::new();
    filled(&steno);
    let line = |object: &str| {
        let text = object.strip_suffix('}').unwrap();
        format!("{text},\"crc\":\"{:08x}\"}}\n", crc32(text.as_bytes()))
    };
    let old = [
        r#"{"tombstones":{"version":1}}"#,
        r#"{"forgotten":{"source":"00000000-0000-5000-8000-000000000001","time":"2026-06-08T08:14:42.123Z","why":"project /src/zq7gone","provider":"claude","role":"transcript","session":"-src-zq7gone/00000000-0000-4000-8000-000000000001","generations":1,"bytes":2,"swept":true}}"#,
        r#"{"forgotten_spine":{"thread":"zq7gone-thread","time":"2026-06-08T08:14:42.123Z","why":"zq7gone","swept":true}}"#,
    ];
    let text: String = old.iter().map(|object| line(object)).collect();
    fs::write(steno.store().join("vault/forgotten.jsonl"), text).unwrap();
    done(&steno.run(&["import"]));
    assert_absent(&steno, "zq7gone", "tombstones");
    done(&steno.run(&["verify"]));
}

/// The checksum of zlib and gzip.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

#[test]
fn forget_deletes_recordings_without_a_file_too() {
    let steno = Steno::new();
    let (secret, _) = filled(&steno);
    let started = |more: serde_json::Value| {
        let mut event =
            serde_json::json!({"type": "run.started", "payload": {"name": SECRET, "kind": "session"}});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let recorded = [
        (
            "00000002-0000-4000-8000-0000000000aa",
            started(serde_json::json!({"session_run_id": secret.claude})),
        ),
        (
            "00000002-0000-4000-8000-0000000000bb",
            started(serde_json::json!({"parent_run_id": secret.claude})),
        ),
    ];
    for (run, event) in &recorded {
        steno.recorded(run, std::slice::from_ref(event));
    }
    done(&steno.run(&["forget", &secret.claude, "--yes"]));
    for (run, _) in &recorded {
        assert!(!steno.transcript(run).exists(), "{run}");
    }
}
