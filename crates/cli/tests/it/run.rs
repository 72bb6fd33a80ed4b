//! `steno run`: a command gets its bytes, its signals and its exit code as without it, and its run is recorded.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{CommandOutput, RunningSteno, Steno, run, wait_until};

const SESSION: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A script that prints what Claude Code prints.
const AGENT: &str = r#"
printf '%s\n' '{"type":"system","subtype":"init","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u1","cwd":"/w","model":"m"}'
printf '%s\n' '{"type":"assistant","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u2","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"Hello."}]}}'
echo careful >&2
printf '%s\n' '{"type":"result","subtype":"success","session_id":"7c9e6679-7425-40de-944b-e07fc1f90ae7","uuid":"u3","is_error":false,"result":"Hello."}'
"#;

/// Waits until everything is archived.
#[track_caller]
pub fn wait_for_archive(steno: &Steno) {
    wait_until("archive", || {
        let left = std::fs::read_dir(steno.store().join("wraps"));
        left.is_ok_and(|mut left| left.next().is_none())
    });
}

/// Returns the rows of `ls --json --runs`.
fn runs(steno: &Steno) -> Vec<Value> {
    steno.run(&["ls", "--json", "--runs"]).json()
}

/// Returns the events of the only run.
#[track_caller]
pub fn events(steno: &Steno) -> Vec<Value> {
    let runs = runs(steno);
    assert_eq!(runs.len(), 1, "{runs:?}");
    let read = steno.run(&["events", runs[0]["run_id"].as_str().unwrap(), "--json"]);
    assert_eq!(read.code, 0, "{read:?}");
    read.json()
}

/// Returns what the evidence has of a lane of the only run: its bytes, and how many were lost.
#[track_caller]
pub fn lane(steno: &Steno, lane: &str) -> (Vec<u8>, u64) {
    let run = runs(steno)[0]["run_id"].as_str().unwrap().to_owned();
    let to = steno.dir.path().join(format!("restored-{lane}"));
    let restored = steno.run(&["restore", &run, "--to", to.to_str().unwrap()]);
    assert_eq!(restored.code, 0, "{restored:?}");
    let mut files: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()).collect();
    let bytes = std::fs::read(files.pop().unwrap()).unwrap();
    lane_of(&bytes, lane)
}

/// Waits until the file of the only command has what it said so far.
#[track_caller]
pub fn wait_for_spool(steno: &Steno, said: &str) {
    wait_until("spool", || {
        let wraps = std::fs::read_dir(steno.store().join("wraps")).ok();
        let mut paths = wraps.into_iter().flatten().map(|entry| entry.unwrap().path());
        let wrap = paths.find(|path| path.extension().is_some_and(|ending| ending == "wrap"));
        let bytes = wrap.and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        lane_of(&bytes, "out").0 == said.as_bytes()
    });
}

/// Unpacks a wrap, as far as it is whole.
pub fn unpack(wrap: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut reader = zstd::stream::read::Decoder::new(wrap).unwrap();
    // A file that is being written ends inside of a frame.
    std::io::Read::read_to_end(&mut reader, &mut plain).ok();
    plain
}

/// Returns what a wrap has of a lane, up to the last whole frame.
#[track_caller]
pub fn lane_of(wrap: &[u8], lane: &str) -> (Vec<u8>, u64) {
    let wrap = unpack(wrap);
    let mut wrap = &wrap[..];
    let (mut bytes, mut lost) = (Vec::new(), 0);
    while let Some(end) = wrap.iter().position(|byte| *byte == b'\n') {
        let control: Value = serde_json::from_slice(&wrap[..end]).unwrap();
        wrap = &wrap[end + 1..];
        if let Some(len) = control["len"].as_u64() {
            let len = usize::try_from(len).unwrap();
            let Some(newline) = wrap.get(len) else { break };
            assert_eq!(*newline, b'\n');
            if control["lane"] == lane {
                bytes.extend_from_slice(&wrap[..len]);
            }
            wrap = &wrap[len + 1..];
        }
        if control["lost"]["lane"] == lane {
            lost += control["lost"]["bytes"].as_u64().unwrap();
        }
    }
    (bytes, lost)
}

/// Checks that the store holds.
#[track_caller]
pub fn verify(steno: &Steno) {
    let verified = steno.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn output_of_opencode_is_recognised() {
    let steno = Steno::new();
    let script = r#"
printf '%s\n' '{"type":"step_start","timestamp":1780906482000,"sessionID":"ses_1","part":{"id":"p1","messageID":"m1"}}'
printf '%s\n' '{"type":"text","timestamp":1780906483000,"sessionID":"ses_1","part":{"id":"p2","messageID":"m1","text":"Hello."}}'
"#;
    let ran = steno.run(&["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:?}");
    wait_for_archive(&steno);
    let events = events(&steno);
    assert_eq!(events[0]["payload"]["name"], "opencode");
    let said = events.iter().find(|event| event["type"] == "message.assistant").unwrap();
    assert_eq!(said["payload"]["blocks"][0]["text"], "Hello.");
}

#[test]
fn exit_code_is_that_of_the_command() {
    let steno = Steno::new();
    for code in [0, 1, 2, 3, 4, 77, 126, 127, 128, 143, 255] {
        let said = steno.run(&["run", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (code, "", ""));
    }
    let missing = steno.run(&["run", "--", "/no/such/program"]);
    assert!(missing.code == 127 && missing.err.contains("cannot start `/no/such/program`"), "{missing:?}");
    let directory = steno.run(&["run", "--", "/"]);
    assert_eq!(directory.code, 126, "{directory:?}");
    wait_for_archive(&steno);
    assert_eq!(runs(&steno).len(), 11, "a command that did not start has no run");
    verify(&steno);
}

#[test]
fn end_by_a_signal_is_that_of_the_command() {
    let steno = Steno::new();
    for signal in [1, 2, 6, 9, 13, 15] {
        let mut command = steno.command(&["run", "--", "sh", "-c", &format!("kill -{signal} $$")]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(signal), "{status:?}");
    }
    wait_for_archive(&steno);
    let signals = runs(&steno).into_iter().map(|run| {
        let read =
            steno.run(&["events", run["run_id"].as_str().unwrap(), "--json", "--type", "run.completed"]);
        read.json()[0]["payload"]["signal"].as_i64().unwrap()
    });
    let mut signals: Vec<i64> = signals.collect();
    signals.sort_unstable();
    assert_eq!(signals, [1, 2, 6, 9, 13, 15]);
}

#[test]
fn signals_are_passed_on() {
    let steno = Steno::new();
    for signal in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"] {
        // Without its own wait for a child the shell would not run the trap at once.
        let script =
            format!("trap 'echo got {signal}; exit 9' {signal}; echo ready; while read -r x; do :; done");
        let mut live = steno.start(&["run", "--", "sh", "-c", &script]);
        assert_eq!(live.line(), "ready\n");
        live.signal(signal);
        let said = live.ended();
        assert_eq!((said.code, said.out), (9, format!("ready\ngot {signal}\n")));
    }
}

#[test]
fn stop_and_continue_signals_reach_both_processes() {
    let steno = Steno::new();
    let mut command = steno.command(&["run", "--", "sh", "-c", "echo $$; while read -r x; do echo $x; done"]);
    // The system ignores this signal in a process group whose parent is in another session.
    command.process_group(0);
    let mut live = RunningSteno::start(command);
    let pid: u32 = live.line().trim().parse().unwrap();
    let state = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    live.signal("TSTP");
    wait_until("stop", || (state(pid), state(live.pid())) == (Some('T'), Some('T')));
    live.signal("CONT");
    live.send("again");
    assert_eq!(live.line(), "again\n");
    assert_eq!(live.finish().code, 0);
}

#[test]
fn plain_output_is_forwarded_and_recorded_byte_for_byte() {
    let steno = Steno::new();
    // Every byte, also what is not text, in more than one frame.
    let input: Vec<u8> = (0..3_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
        .collect();
    let path = steno.dir.path().join("input");
    std::fs::write(&path, &input).unwrap();
    let script = "cat input; echo problem >&2; exit 3";
    let said = steno.command(&["run", "--name", "bytes", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!((said.status.code(), said.stderr.as_slice()), (Some(3), &b"problem\n"[..]));
    assert!(said.stdout == input);
    wait_for_archive(&steno);
    assert!(lane(&steno, "out") == (input, 0));
    assert_eq!(lane(&steno, "err"), (b"problem\n".to_vec(), 0));
    let events = events(&steno);
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["run.started", "step.started", "step.completed", "run.completed"]);
    let (started, done) = (&events[0]["payload"], &events[2]["payload"]["result"]);
    assert_eq!((&started["name"], &started["kind"]), (&json!("bytes"), &json!("command")));
    assert_eq!((&done["exit_code"], &done["stdout_bytes"]), (&json!(3), &json!(3_000_000)));
    assert_eq!(done["stdout_left_out_bytes"], 3_000_000 - (256 + 64) * 1024);
    verify(&steno);
    let shown = steno.run(&["show", "last"]);
    assert!(shown.out.contains("command bytes") && shown.out.contains("problem"), "{shown:?}");
}

#[test]
fn agent_is_one_session_with_its_own_file() {
    let steno = Steno::new();
    let said = steno.run(&["run", "--", "sh", "-c", AGENT]);
    assert_eq!((said.code, said.err.as_str()), (0, "careful\n"));
    wait_for_archive(&steno);
    let file = steno.dir.path().join(format!("{SESSION}.jsonl"));
    let line = json!({"type": "user", "uuid": "u0", "sessionId": SESSION, "timestamp": "2026-06-08T08:14:42.123Z",
        "version": "2.1.3", "cwd": "/w", "message": {"role": "user", "content": "Say hello."}});
    std::fs::write(&file, format!("{line}\n")).unwrap();
    assert_eq!(steno.run(&["import", file.to_str().unwrap()]).code, 0);
    let listed = steno.run(&["ls", "--json"]).json();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["run_id"], &listed[0]["runs"]), (&json!(SESSION), &json!(2)));
    let shown = steno.run(&["show", SESSION]);
    assert!(shown.out.contains("Say hello.") && shown.out.contains("Hello."), "{shown:?}");
    verify(&steno);
}

#[test]
fn output_that_ends_before_it_names_its_session_is_that_session() {
    let steno = Steno::new();
    let event = |kind: &str, id: &str, data: Value| {
        let at = "2026-06-08T08:14:42.123Z";
        json!({"type": kind, "id": id, "timestamp": at, "parentId": null, "data": data}).to_string()
    };
    let start = event("session.start", "e0", json!({"sessionId": SESSION, "copilotVersion": "1.0.92"}));
    let prompt = event("user.message", "e1", json!({"content": "Wait.", "interactionId": "i1"}));
    let call = json!({"toolCallId": "c1", "name": "bash", "arguments": {"command": "sleep 9"}});
    let data =
        json!({"messageId": "m1", "interactionId": "i1", "content": "I wait.", "toolRequests": [call]});
    let answer = event("assistant.message", "e2", data);
    let script = format!("printf '%s\\n' '{prompt}' '{answer}'");
    assert_eq!(steno.run(&["run", "--", "sh", "-c", &script]).code, 0);
    wait_for_archive(&steno);
    let file = steno.dir.path().join("events.jsonl");
    std::fs::write(&file, format!("{start}\n{prompt}\n{answer}\n")).unwrap();
    assert_eq!(steno.run(&["import", file.to_str().unwrap()]).code, 0);
    let listed = steno.run(&["ls", "--json"]).json();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let counts = ["run_id", "runs", "prompts", "calls"].map(|name| listed[0][name].clone());
    assert_eq!(counts, [json!(SESSION), json!(2), json!(1), json!(1)]);
    verify(&steno);
}

#[test]
fn command_knows_its_run() {
    let steno = Steno::new();
    let said = steno.run(&["run", "--", "sh", "-c", "echo $STENO_RUN"]);
    wait_for_archive(&steno);
    assert_eq!(runs(&steno)[0]["run_id"], said.out.trim());
}

#[test]
fn run_can_be_followed_before_its_end() {
    let steno = Steno::new();
    let script = format!("{}\nread -r x\n", AGENT.lines().take(3).collect::<Vec<_>>().join("\n"));
    let mut live = steno.start(&["run", "--", "sh", "-c", &script]);
    live.lines(2);
    wait_until("events", || steno.run(&["events", SESSION, "--json"]).out.contains("message.assistant"));
    assert!(live.is_alive());
    live.send("");
    assert_eq!(live.finish().code, 0);
}

#[test]
fn reader_that_leaves_ends_the_command() {
    let steno = Steno::new();
    let mut shell = steno.shell("\"$0\" \"$@\" | head -n 1", &["run", "--", "sh", "-c", "yes; echo $? >&2"]);
    let said = shell.output().unwrap();
    assert_eq!((said.stdout.as_slice(), said.status.code()), (&b"y\n"[..], Some(0)));
    wait_for_archive(&steno);
    assert!(events(&steno).last().unwrap()["payload"]["exit_code"].is_u64());
}

#[test]
fn order_of_both_streams_is_kept_if_they_are_one_file() {
    let steno = Steno::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done";
    let mut shell = steno.shell("\"$0\" \"$@\" > joined 2>&1", &["run", "--", "sh", "-c", script]);
    assert!(shell.status().unwrap().success());
    let want: String =
        (1..10).flat_map(|number| [format!("out {number}\n"), format!("err {number}\n")]).collect();
    assert_eq!(std::fs::read_to_string(steno.dir.path().join("joined")).unwrap(), want);
    wait_for_archive(&steno);
    assert_eq!(lane(&steno, "out").0, want.into_bytes());
}

#[test]
fn failed_command_is_listed_named_and_found() {
    let steno = Steno::new();
    let script = "echo partial; echo boom >&2; exit 3";
    assert_eq!(steno.run(&["run", "--name", "my build", "--", "sh", "-c", script]).code, 3);
    assert_eq!(steno.run(&["run", "--", "echo", "hi there"]).code, 0);
    assert_eq!(steno.run(&["import"]).code, 0);
    let listed = |args: &[&str]| -> Vec<(Value, Value)> {
        let rows = steno.run(&[&["ls", "--json"], args].concat()).json();
        let mut rows: Vec<_> =
            rows.into_iter().map(|row| (row["title"].clone(), row["state"].clone())).collect();
        rows.sort_by_key(|row| row.0.to_string());
        rows
    };
    let failed = (json!("my build"), json!("failed"));
    assert_eq!(listed(&[]), [(json!("echo 'hi there'"), json!("done")), failed.clone()]);
    assert_eq!(listed(&["--failed"]), std::slice::from_ref(&failed));
    assert_eq!(listed(&["build"]), [failed]);
    for (word, text) in [("partial", "partial"), ("boom", "boom"), ("there", "hi there")] {
        let hits = steno.run(&["search", word, "in:output", "--json"]).json();
        assert_eq!((hits.len(), hits[0]["kind"].clone()), (2, json!("output")), "{hits:?}");
        assert!(hits[0]["text"].as_str().unwrap().contains(text), "{hits:?}");
    }
    let [.., searched] = &steno.run(&["search", "there", "in:command", "--json"]).json()[..] else {
        panic!()
    };
    assert_eq!(searched["hits"], 1, "the words of the command: {searched}");
    check_failed_command(&steno, script);
    let said = steno.run(&["restore", "last"]);
    assert!(said.code == 1 && said.err.contains("has no file of an agent"), "{said:?}");
}

/// Checks that every list has the failed command of [`failed_command_is_listed_named_and_found`].
#[track_caller]
fn check_failed_command(steno: &Steno, script: &str) {
    let failures = steno.run(&["failures", "--json"]).json();
    assert_eq!(failures.len(), 1, "{failures:?}");
    let failure = &failures[0];
    assert_eq!(
        (&failure["exit_code"], &failure["class"], &failure["tool"], &failure["command"]),
        (&json!(3), &json!("command"), &json!("my build"), &json!(script))
    );
    assert_eq!((&failure["line"], &failure["output"]), (&json!("boom"), &json!("partial\n\nboom\n")));
    let said = steno.run(&["failures"]).out;
    assert!(said.contains(&format!("✗ exit 3  $ {script}\n     boom\n")), "{said}");
    let rows = steno.run(&["ls", "--json"]).json();
    let counts: Vec<_> = rows.iter().map(|row| (&row["state"], &row["calls"], &row["failures"])).collect();
    assert!(counts.contains(&(&json!("failed"), &json!(0), &json!(1))), "{counts:?}");
    for query in ["exit:3", "exit:!0", "tool:build", "boom exit:3 in:output"] {
        let hits = steno.run(&["search", query, "--json"]).json();
        let is_found = hits[0]["run_id"] == failure["run_id"];
        assert!(is_found && hits.last().unwrap()["sessions_found"] == 1, "{query}: {hits:?}");
    }
    let shown = steno.run(&["show", failure["handle"].as_str().unwrap()]);
    assert!(shown.code == 0 && shown.out.contains("exit code 3"), "{shown:?}");
}

#[test]
fn input_is_recorded_on_request() {
    let steno = Steno::new();
    let said = steno.run_with(&["run", "--input", "--", "cat"], b"a\x00b\xff\nend");
    assert_eq!(said.code, 0);
    wait_for_archive(&steno);
    assert_eq!(
        (lane(&steno, "in").0, lane(&steno, "out").0),
        (b"a\x00b\xff\nend".to_vec(), b"a\x00b\xff\nend".to_vec())
    );
    verify(&steno);
}

/// Runs a script with its output in files, and returns the exit code as soon as `run` has ended.
#[track_caller]
fn run_into_files(steno: &Steno, script: &str) -> Option<i32> {
    let file = |name: &str| std::fs::File::create(steno.dir.path().join(name)).unwrap();
    let mut command = steno.command(&["run", "--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).status().unwrap().code()
}

#[test]
fn output_of_a_program_in_the_background_is_forwarded_after_the_end() {
    let steno = Steno::new();
    let file = |name: &str| std::fs::read_to_string(steno.dir.path().join(name)).unwrap_or_default();
    let script = "(until test -e go; do sleep 0.05; done; echo later; echo later >&2; echo $? > done) &
        echo now; echo now >&2; exit 6";
    assert_eq!(run_into_files(&steno, script), Some(6));
    assert_eq!((file("out"), file("err")), ("now\n".to_owned(), "now\n".to_owned()));
    wait_for_archive(&steno);
    std::fs::write(steno.dir.path().join("go"), "").unwrap();
    wait_until("output", || {
        (file("out"), file("err")) == ("now\nlater\n".to_owned(), "now\nlater\n".to_owned())
    });
    wait_until("end", || file("done") == "0\n");
    // What came after the end is not in the record, and the record says so.
    assert_eq!((lane(&steno, "out"), lane(&steno, "err")), ((b"now\n".to_vec(), 0), (b"now\n".to_vec(), 0)));
    let end = &events(&steno).pop().unwrap()["payload"];
    assert_eq!((&end["exit_code"], &end["left_open"]), (&json!(6), &json!(["out", "err"])));
    verify(&steno);
}

#[test]
fn program_in_the_background_that_prints_without_end_does_not_delay_the_end() {
    let steno = Steno::new();
    let mut command = steno.command(&["run", "--", "sh", "-c", "yes & echo $! > pid; exit 6"]);
    let code = command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().code();
    let pid = std::fs::read_to_string(steno.dir.path().join("pid")).unwrap();
    let killed = Command::new("kill").arg(pid.trim()).status().unwrap();
    assert_eq!((code, killed.success()), (Some(6), true));
}

#[test]
fn output_right_after_the_end_is_recorded() {
    let steno = Steno::new();
    assert_eq!(run_into_files(&steno, "(sleep 0.01; echo later) & echo now"), Some(0));
    wait_for_archive(&steno);
    assert_eq!(lane(&steno, "out"), (b"now\nlater\n".to_vec(), 0));
    assert_eq!(events(&steno).pop().unwrap()["payload"]["left_open"], Value::Null);
}

#[test]
fn input_reaches_the_command() {
    let steno = Steno::new();
    let input: Vec<u8> =
        (0..2_000_000_u32).map(|number| number.to_le_bytes()[usize::from(number % 3 == 0)]).collect();
    std::fs::write(steno.dir.path().join("input"), &input).unwrap();
    for script in [
        "\"$0\" run -- cat < input > output",
        "cat input | \"$0\" run --input -- cat | cat > output",
        "\"$0\" run -- cat <&- > output",
    ] {
        let is_closed = script.contains("<&-");
        let status = steno.shell(script, &[]).stderr(Stdio::null()).status().unwrap();
        let output = std::fs::read(steno.dir.path().join("output")).unwrap();
        assert!(output == if is_closed { &b""[..] } else { &input }, "{script}: {} bytes", output.len());
        assert!(is_closed || status.success(), "{script}");
    }
}

#[track_caller]
fn check_unrecorded(steno: &Steno, said: &CommandOutput, why: &str) {
    assert_eq!((said.code, said.out.as_str()), (5, "hello\n"), "{said:?}");
    assert!(said.err.contains("NOTHING IS RECORDED") && said.err.contains(why), "{said:?}");
    assert!(!steno.store().join("wraps").exists());
}

#[test]
fn command_runs_if_nothing_can_be_recorded() {
    const ARGS: [&str; 5] = ["run", "--", "sh", "-c", "echo hello; exit 5"];
    let steno = Steno::new();
    let mut command = steno.command(&ARGS);
    command.env("STENO_HOME", "/dev/null/store");
    check_unrecorded(&steno, &run(command, b""), "cannot open the store");

    assert_eq!(steno.run(&["pause"]).code, 0);
    check_unrecorded(&steno, &steno.run(&ARGS), "paused");
    assert_eq!(steno.run(&["resume"]).code, 0);

    let config = steno.dir.path().join("config.toml");
    let here = steno.dir.path().canonicalize().unwrap();
    std::fs::write(&config, format!("exclude_projects = [\"{}\"]\n", here.display())).unwrap();
    let args: Vec<&str> = ["--config", config.to_str().unwrap()].into_iter().chain(ARGS).collect();
    check_unrecorded(&steno, &steno.run(&args), "exclude_projects");
}

#[test]
fn output_during_a_pause_is_counted() {
    let steno = Steno::new();
    let mut live: RunningSteno = steno.start(&["run", "--", "cat"]);
    live.send("before");
    live.line();
    wait_for_spool(&steno, "before\n");
    assert_eq!(steno.run(&["pause"]).code, 0);
    live.send("a secret");
    live.line();
    assert_eq!(steno.run(&["resume"]).code, 0);
    live.send("after");
    live.line();
    assert_eq!(live.finish().code, 0);
    wait_for_archive(&steno);
    assert_eq!(lane(&steno, "out"), (b"before\nafter\n".to_vec(), 9));
    let events = events(&steno);
    assert_eq!(events.last().unwrap()["payload"]["lost_bytes"], 9);
    verify(&steno);
}

#[test]
fn forgotten_command_is_gone() {
    let steno = Steno::new();
    steno.run(&["run", "--", "echo", "a secret"]);
    wait_for_archive(&steno);
    let forgotten = steno.run(&["forget", "last", "--yes"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    assert_eq!(runs(&steno).len(), 0);
    let all = steno.look();
    assert!(!all.values().any(|file| file.bytes.windows(8).any(|part| part == b"a secret")), "it is gone");
}

#[test]
fn forgotten_session_of_an_agent_is_gone_and_does_not_come_back() {
    let steno = Steno::new();
    for _ in 0..2 {
        assert_eq!(steno.run(&["run", "--", "sh", "-c", AGENT]).code, 0);
        wait_for_archive(&steno);
        // The second time there is nothing to forget.
        steno.run(&["forget", SESSION, "--yes"]);
        assert_eq!(runs(&steno).len(), 0);
        let all = steno.look();
        assert!(!all.values().any(|file| file.bytes.windows(6).any(|part| part == b"Hello.")), "it is gone");
    }
}

#[test]
fn entries_are_logged() {
    let steno = Steno::new();
    let log = steno.dir.path().join("entries.jsonl");
    let said = steno.run(&["run", "--entries", log.to_str().unwrap(), "--", "sh", "-c", AGENT]);
    assert_eq!(said.code, 0, "{said:?}");
    wait_for_archive(&steno);
    wait_until("entries", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("transcript.stop"))
    });
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("assistant_message") && text.contains("transcript.start"), "{text}");
}
