//! `steno pause`: nothing is recorded, and with `--skip` it never is.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::world::{World, append};
use super::{PUBLIC, SECRET, assert_absent, assert_present, done};
use crate::app_server::{AppServerClient, SAID, SERVER};
use crate::kit::{RUN, Steno, id, json, wait_until};
use crate::serve::send;

/// Tries every way in; none takes anything.
fn try_all(steno: &Steno, secret: &World) {
    let before = steno.look();
    for args in [
        &["import"][..],
        &["up", "--once", "--no-serve"],
        &["spine", "record", &secret.codex_file().display().to_string()],
    ] {
        let said = steno.run(args);
        assert_eq!(said.code, 1, "{args:?} {said:?}");
        assert!(said.err.contains("recording is paused") && said.err.contains("steno resume"), "{said:?}");
    }
    let said = steno.run_with(&["record", "--run", RUN], b"{\"type\":\"run.started\",\"payload\":null}\n");
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    steno.assert_unchanged(&before, "while recording is paused");
    let mut connected = AppServerClient::begin(steno, &["sh", "-c", SERVER]);
    let mut heard = String::new();
    for line in SAID {
        connected.say(&line.replace("Hello.", "zq7secret said"));
        heard.push_str(&connected.hear());
    }
    let (rest, code, talk) = connected.end();
    assert_eq!((code, (heard + &rest).lines().count()), (7, 4), "the server is not disturbed: {talk}");
    assert!(talk.contains("recording was paused"), "{talk}");
    assert_absent(steno, SECRET, "while recording is paused");
}

#[test]
fn pause_stops_every_command_and_files_are_archived_afterwards() {
    let steno = Steno::new();
    World::new(&steno, PUBLIC, 0xab).write();
    done(&steno.run(&["import"]));
    let paused = steno.run(&["pause"]);
    done(&paused);
    assert!(paused.err.contains("archived afterwards"), "{paused:?}");
    let secret = World::new(&steno, SECRET, 0x5e);
    secret.write();
    try_all(&steno, &secret);
    done(&steno.run(&["resume"]));
    done(&steno.run(&["import"]));
    assert_present(&steno, "zq7secret prompt");
    // Messages of a connection are in no file, and the command says so.
    assert_present(&steno, "\"reason\":\"paused\"");
}

#[test]
fn recording_over_http_is_refused_during_a_pause() {
    let steno = Steno::new();
    let mut live = steno.start(&["serve", "--port", "0", "--json"]);
    let file = PathBuf::from(json(&live.line())["token_file"].as_str().unwrap());
    let path = |run: &str| format!("/v1/runs/{run}/events");
    let event = |name: &str| format!(r#"{{"type":"step.started","payload":{{"name":"{name}","kind":"x"}}}}"#);
    let answer = send(&file, &path(RUN), &event("before"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    done(&steno.run(&["pause"]));
    let before = steno.text(RUN);
    // The first run is still open, the second would begin.
    for run in [RUN, &id(7)] {
        let answer = send(&file, &path(run), &event(SECRET));
        assert!(
            answer.starts_with("HTTP/1.1 503") && answer.contains("urn:steno:problem:paused"),
            "{answer}"
        );
    }
    assert!(steno.text(RUN) == before && !steno.transcript(&id(7)).exists());
    done(&steno.run(&["resume"]));
    let answer = send(&file, &path(RUN), &event("after"));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"seq\":2"), "{answer}");
    live.signal("TERM");
    done(&live.ended());
    assert_absent(&steno, SECRET, "refused");
}

#[test]
fn writes_during_a_skipping_pause_are_never_archived() {
    let steno = Steno::new();
    let public = World::new(&steno, PUBLIC, 0xab);
    public.write();
    done(&steno.run(&["import"]));
    done(&steno.run(&["pause", "--skip"]));
    let secret = World::new(&steno, SECRET, 0x5e);
    secret.write();
    // A session from before the pause continues.
    append(&public.claude_file(), "{\"type\":\"custom-title\",\"customTitle\":\"zq7secret title\"}\n");
    append(&public.codex_file(), "{\"type\":\"event_msg\",\"payload\":{\"message\":\"zq7secret codex\"}}\n");
    try_all(&steno, &secret);
    let resumed = steno.run(&["resume"]);
    done(&resumed);
    assert!(resumed.err.contains("left out permanently"), "{resumed:?}");
    done(&steno.run(&["import"]));
    append(&secret.claude_file(), "{\"type\":\"custom-title\",\"customTitle\":\"zq7secret later\"}\n");
    append(&public.claude_file(), "{\"type\":\"custom-title\",\"customTitle\":\"after\"}\n");
    let after = World::new(&steno, "zq7after", 0x33);
    after.write();
    done(&steno.run(&["import"]));
    assert_absent(&steno, SECRET, "skipped");
    super::assert_whole(&steno, PUBLIC);
    super::assert_whole(&steno, "zq7after");
    done(&steno.run(&["verify"]));
}

/// Files have their times from a clock that is a few milliseconds behind.
#[test]
fn writes_right_after_a_pause_began_are_skipped() {
    let steno = Steno::new();
    done(&steno.run(&["pause", "--skip"]));
    let begun = fs::metadata(steno.store().join("paused")).unwrap().modified().unwrap();
    let file = World::new(&steno, SECRET, 0x5e).claude_file();
    append(&file, "{\"type\":\"custom-title\",\"customTitle\":\"zq7secret title\"}\n");
    let behind = begun - Duration::from_millis(10);
    fs::File::options().append(true).open(&file).unwrap().set_modified(behind).unwrap();
    done(&steno.run(&["resume"]));
    steno.run(&["import"]);
    assert_absent(&steno, SECRET, "written at once");
}

#[test]
fn skipping_pause_holds_for_followers_and_timeouts() {
    let steno = Steno::new();
    World::new(&steno, PUBLIC, 0xab).write();
    let mut live = steno.start(&["watch"]);
    live.line();
    done(&steno.run(&["pause", "--skip"]));
    let secret = World::new(&steno, SECRET, 0x5e);
    secret.write();
    done(&steno.run(&["resume"]));
    let after = World::new(&steno, "zq7after", 0x33);
    after.write();
    wait_until("what follows", || steno.transcript(&after.claude).is_file());
    live.signal("INT");
    done(&live.ended());
    assert_absent(&steno, SECRET, "followed");
    done(&steno.run(&["pause", "--skip", "--for", "1h"]));
    secret.beside(0x5f, SECRET).write();
    // The hour is over.
    let file = steno.store().join("paused");
    let text = fs::read_to_string(&file).unwrap();
    let (before, after) = text.split_once("\"until\":\"").unwrap();
    let rest = after.split_once('"').unwrap().1;
    fs::write(&file, format!("{before}\"until\":\"{}\"{rest}", jiff::Timestamp::now())).unwrap();
    done(&steno.run(&["import"]));
    assert!(!file.exists());
    assert_absent(&steno, SECRET, "ended by itself");
    let steno = Steno::new();
    assert_eq!(steno.run(&["resume"]).code, 1);
}
