//! The pager of `steno show` and of lists: which one is started and when, what reaches it, and how it ends. What waits on a
//! terminal only.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{needs, tool};

use crate::kit::{Steno, id, json as parsed, program, run};

/// Runs a program on a terminal of 80 columns. Prints what the terminal shows, and the exit code.
const DRIVER: &str = r#"
import fcntl, json, os, pty, struct, sys, termios

asked = json.loads(sys.argv[1])
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    streams = [slave, slave, slave]
    if asked.get("file"):
        streams[1] = os.open(asked["file"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.update(asked["variables"])
    os.execv(asked["words"][0], asked["words"])
os.close(slave)
shown, is_pressed = b"", False
while True:
    try:
        piece = os.read(master, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
    if asked["until"].encode() in shown and not is_pressed:
        is_pressed = True
        os.write(master, asked["key"].encode())
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps([shown.decode(errors="replace"), code]))
"#;

/// How many lines the prompt of the session has: more than a pipe holds.
const LINES: usize = 20_000;

/// A directory with a long session of Claude Code.
fn long_session() -> Steno {
    let steno = Steno::new();
    let words: Vec<String> = (1..=LINES).map(|number| format!("- item {number}")).collect();
    let prompt = json!({
        "type": "user", "sessionId": "550e8400-e29b-41d4-a716-446655440000", "version": "2.1.100", "uuid": "u1",
        "timestamp": "2026-06-08T08:14:00.000Z", "message": {"role": "user", "content": words.join("\n")},
    });
    fs::write(steno.dir.path().join("long.jsonl"), format!("{prompt}\n")).unwrap();
    steno
}

/// Shows the session on a terminal. Returns what the terminal shows, and the exit code.
#[track_caller]
fn show(steno: &Steno, options: &[&str], variables: &Value, file: Option<&str>) -> (String, i64) {
    on_terminal(steno, &[&["show", "long.jsonl"], options].concat(), variables, (file, "ready"))
}

/// Runs a command on a terminal. Ctrl-C is pressed when a text is shown.
#[track_caller]
fn on_terminal(
    steno: &Steno,
    args: &[&str],
    variables: &Value,
    (file, until): (Option<&str>, &str),
) -> (String, i64) {
    pressing("\u{3}", steno, args, variables, (file, until))
}

/// Runs a command on a terminal. Keys are pressed when a text is shown.
#[track_caller]
fn pressing(
    key: &str,
    steno: &Steno,
    args: &[&str],
    variables: &Value,
    (file, until): (Option<&str>, &str),
) -> (String, i64) {
    let mut words = vec![program().into_string().unwrap()];
    words.extend(args.iter().map(ToString::to_string));
    let mut all = json!({"TERM": "xterm-256color"});
    all.as_object_mut().unwrap().extend(variables.as_object().unwrap().clone());
    let mut python = Command::new("python3");
    python.env_clear().current_dir(steno.dir.path());
    python.env("STENO_HOME", steno.store()).env("TZ", "UTC");
    python.env("HOME", steno.dir.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    python.arg("-c").arg(DRIVER);
    python
        .arg(json!({"words": words, "variables": all, "file": file, "until": until, "key": key}).to_string());
    let said = run(python, b"");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let answer = parsed(&said.out);
    (answer[0].as_str().unwrap().to_owned(), answer[1].as_i64().unwrap())
}

fn last_item() -> String {
    format!("item {LINES}")
}

#[test]
fn pager_gets_everything_in_colours() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = long_session();
    let pager = json!({"STENO_PAGER": "cat > seen; echo PAGED", "PAGER": "echo OTHER"});
    assert_eq!(show(&steno, &[], &pager, None), ("PAGED\r\n".to_owned(), 0));
    let seen = fs::read_to_string(steno.dir.path().join("seen")).unwrap();
    assert!(seen.contains("\u{1b}[") && seen.contains(&last_item()), "{}", &seen[..500]);
    let (shown, _) = show(&steno, &["--color", "never"], &pager, None);
    assert_eq!(shown, "PAGED\r\n");
    assert!(!fs::read_to_string(steno.dir.path().join("seen")).unwrap().contains('\u{1b}'));
    let (shown, _) = show(&steno, &[], &json!({"PAGER": "cat > seen; echo OTHER"}), None);
    assert_eq!(shown, "OTHER\r\n");
}

#[test]
fn less_is_the_pager_unless_another_is_set() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = long_session();
    fs::create_dir(steno.dir.path().join("bin")).unwrap();
    let less = steno.dir.path().join("bin/less");
    fs::write(&less, "#!/bin/sh\n/bin/cat > seen\necho \"$@\" \"$LESS\"\n").unwrap();
    make_executable(&less);
    let path = steno.dir.path().join("bin");
    let path = path.to_str().unwrap();
    assert_eq!(show(&steno, &[], &json!({"PATH": path}), None), ("-R FRX\r\n".to_owned(), 0));
    let own = json!({"PATH": path, "LESS": "S"});
    assert_eq!(show(&steno, &[], &own, None), ("-R S\r\n".to_owned(), 0));
    // Without any pager, the session is printed.
    fs::remove_file(less).unwrap();
    let (shown, code) = show(&steno, &[], &json!({"PATH": path}), None);
    assert!(code == 0 && shown.contains(&last_item()), "{code}");
}

#[test]
fn pager_is_not_started_if_nobody_wants_it() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = long_session();
    let paged = json!({"STENO_PAGER": "echo PAGED"});
    for (options, variables) in [
        (&["--no-pager"][..], &paged),
        (&[], &json!({"PAGER": "cat"})),
        (&[], &json!({"STENO_PAGER": "", "PAGER": "echo PAGED"})),
        (&["--json"], &paged),
    ] {
        let (shown, code) = show(&steno, options, variables, None);
        assert!(
            code == 0 && shown.contains(&last_item()) && !shown.contains("PAGED"),
            "{options:?} {variables}"
        );
    }
    let (shown, code) = show(&steno, &[], &paged, Some("out"));
    assert_eq!((shown.as_str(), code), ("", 0));
    let out = fs::read_to_string(steno.dir.path().join("out")).unwrap();
    assert!(out.contains(&last_item()) && !out.contains('\u{1b}'));
}

#[test]
fn leaving_the_pager_is_no_error() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = long_session();
    let (shown, code) = show(&steno, &["--color", "never"], &json!({"STENO_PAGER": "head -n 1"}), None);
    assert_eq!((shown.as_str(), code), ("- item 1\r\n", 0));
    // Ctrl-C is for the pager.
    let pager = "cat > /dev/null; trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let (shown, code) = show(&steno, &[], &json!({"STENO_PAGER": pager}), None);
    assert!(code == 0 && shown.ends_with("caught\r\n"), "{code} {shown:?}");
}

/// A store with many sessions, each with a failed command and a changed file.
fn many_sessions() -> Steno {
    let steno = Steno::new();
    for number in 1..=30 {
        let call = |name: &str, class: &str, input: Value, outcome: &str| {
            let id = format!("{name}-{number}");
            let both = json!({"name": name, "call_id": id, "class": class, "fidelity": "agent_emitted"});
            let with = |field: &str, value: &Value| {
                let mut payload = both.clone();
                payload[field] = value.clone();
                payload
            };
            let mut result = with("output", &json!("make: *** no rule"));
            result["outcome"] = json!(outcome);
            [("tool.call", with("input", &input)), ("tool.result", result)]
        };
        let usage = json!({"input_tokens": 1000, "output_tokens": 10});
        let source = json!({"adapter": "claude/4", "provider": "claude", "channel": "disk"});
        let began = [("run.started", json!({"name": "claude", "kind": "session", "source": source}))];
        let answer = json!({"role": "assistant", "model": "claude-opus-4-8", "response": format!("r{number}"), "usage": usage,
            "blocks": [{"type": "text", "fidelity": "agent_emitted", "text": "I run make."}]});
        let edit = json!({"file_path": "/srv/a.rs", "old_string": "a", "new_string": "b"});
        let events = began
            .into_iter()
            .chain([("message.assistant", answer)])
            .chain(call("Bash", "command", json!({"command": "make"}), "failed"))
            .chain(call("Edit", "file_change", edit, "ok"));
        let event = |(kind, payload): (&str, Value)| json!({"type": kind, "timestamp": "2026-06-08T08:14:00Z", "payload": payload});
        steno.recorded(&id(number), &events.map(event).collect::<Vec<_>>());
    }
    steno
}

#[test]
fn lists_are_paged_only_if_they_are_longer_than_the_screen() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = many_sessions();
    let pager = json!({"STENO_PAGER": "cat > /dev/null; echo PAGED"});
    for (args, is_paged) in [
        (&["failures", "-n", "0"][..], true),
        (&["failures", "-n", "3"], false),
        (&["failures", "-n", "0", "--no-pager"], false),
        (&["failures", "-n", "0", "--json"], false),
        (&["changes", "-n", "0"], true),
        (&["changes", "-n", "2"], false),
        (&["changes", "-n", "0", "--no-pager"], false),
        (&["search", "make", "-n", "0"], true),
        (&["search", "make", "-n", "2"], false),
        (&["search", "make", "-n", "0", "--no-pager"], false),
        (&["usage", "--by", "session"], true),
        (&["usage", "--by", "model"], false),
        (&["usage", "--by", "session", "--no-pager"], false),
        (&["ls"], true),
        (&["ls", "-n", "3"], false),
        (&["ls", "--no-pager"], false),
        (&["ls", "--json"], false),
        (&["ls", "--runs"], true),
    ] {
        let (shown, code) = on_terminal(&steno, args, &pager, (None, "no such text"));
        assert_eq!((code, shown.contains("PAGED")), (0, is_paged), "{args:?}: {shown}");
        assert!(is_paged || shown.lines().count() > 2, "{args:?}: {shown}");
    }
}

#[test]
fn output_is_printed_if_the_pager_cannot_be_started() {
    needs!(tool("python3"), "python3 is not installed");
    let warning = |variable: &str| format!("cannot start the pager `nosuch -x` that `{variable}` names");
    // More than a pipe holds.
    let steno = long_session();
    for variable in ["PAGER", "STENO_PAGER"] {
        let (shown, code) = show(&steno, &["-t", "4"], &json!({variable: "nosuch -x"}), None);
        assert_eq!(code, 0);
        assert!(shown.contains(&warning(variable)), "{}", &shown[..500]);
        let items: Vec<&str> =
            shown.lines().filter_map(|line| Some(line.rsplit_once("- item ")?.1)).collect();
        // The title is the first line.
        assert_eq!(items.len(), LINES + 1);
        assert!(items[1..].iter().zip(1..).all(|(item, number)| *item == number.to_string()));
    }
    // Less than that, and a file that is no program.
    let steno = many_sessions();
    fs::write(steno.dir.path().join("file"), "no program").unwrap();
    for (pager, code) in [("nosuch", 127), ("./file", 126)] {
        let (shown, exit) = on_terminal(&steno, &["ls"], &json!({"PAGER": pager}), (None, "no such text"));
        assert_eq!((exit, shown.matches("≥$0.00").count()), (0, 30), "{code}: {shown}");
        assert!(shown.contains(&format!("cannot start the pager `{pager}`")), "{shown}");
    }
    // A pager that has read more than a pipe holds was started.
    let late = json!({"PAGER": "cat > seen; exit 127"});
    let (shown, code) = show(&long_session(), &["-t", "4"], &late, None);
    assert_eq!((shown.as_str(), code), ("", 0));
}

#[test]
fn tree_is_paged_if_it_is_longer_than_the_screen() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    let prompts: Vec<Value> = (1..=40)
        .map(|number| {
            json!({
                "type": "user", "sessionId": "550e8400-e29b-41d4-a716-446655440000", "version": "2.1.100",
                "uuid": format!("u{number}"), "parentUuid": format!("u{}", number - 1),
                "timestamp": "2026-06-08T08:14:00.000Z", "message": {"role": "user", "content": "Go on."},
            })
        })
        .collect();
    let lines: Vec<String> = prompts.iter().map(|prompt| format!("{prompt}\n")).collect();
    fs::write(steno.dir.path().join("turns.jsonl"), lines.concat()).unwrap();
    let pager = json!({"STENO_PAGER": "cat > /dev/null; echo PAGED"});
    for (options, is_paged) in [(&[][..], true), (&["--no-pager"], false), (&["--json"], false)] {
        let args = [&["tree", "turns.jsonl"], options].concat();
        let (shown, code) = on_terminal(&steno, &args, &pager, (None, "no such text"));
        assert_eq!((code, shown.contains("PAGED")), (0, is_paged), "{options:?}: {shown}");
    }
}

#[test]
fn no_to_the_question_of_forget_is_no_error() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = many_sessions();
    let args = ["forget", "1e1e"];
    let (shown, code) = pressing("n\r", &steno, &args, &json!({}), (None, "[y/N] "));
    assert!(code == 1 && shown.starts_with("will be deleted:\r\n"), "{code}: {shown}");
    assert!(shown.ends_with("[y/N] n\r\nnothing was forgotten\r\n"), "{shown}");
    assert_eq!(steno.run(&["ls", "--json"]).json().len(), 30);
    // Nor is a question broken inside a word.
    let titled = json!({
        "type": "user", "sessionId": "550e8400-e29b-41d4-a716-446655440000", "version": "2.1.100", "uuid": "u1",
        "timestamp": "2026-06-08T08:14:00.000Z",
        "message": {"role": "user", "content": "Why does the checkout fail for orders with two coupons?"},
    });
    let dir = steno.dir.path().join(".claude/projects/-srv");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("550e8400-e29b-41d4-a716-446655440000.jsonl"), format!("{titled}\n")).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let (shown, _) = pressing("n\r", &steno, &["forget", "550e"], &json!({}), (None, "[y/N] "));
    let question: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("delete ")).collect();
    let words = "delete \"Why does the checkout fail for orders with two coupons?\" (1 file and 1\n  run) permanently? [y/N] n";
    assert_eq!(question[..2].join("\n"), words, "{shown}");
}

#[test]
fn follow_waits_for_a_session_on_a_terminal() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = many_sessions();
    let (shown, code) = on_terminal(&steno, &["follow"], &json!({}), (None, "waiting for one"));
    assert_eq!(code, -2, "Ctrl-C ends it: {shown}");
    assert!(shown.starts_with("no session is being recorded; the latest is\r\n  "), "{shown}");
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}
