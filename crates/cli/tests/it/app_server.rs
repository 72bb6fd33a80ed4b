//! `steno app-server`: client and server work as usual, and their messages are recorded, even after kills.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::kit::{Steno, wait_until};
use crate::privacy::scan::places_of;

/// A server that answers the first requests like `codex app-server`, and exits with 7.
pub const SERVER: &str = r#"
while IFS= read -r line; do
  case "$line" in
    *thread/start*) printf '%s\n' '{"id":2,"result":{"thread":{"id":"th1","cwd":"/w"},"model":"m"}}' ;;
    *turn/start*) printf '%s\n%s\n' '{"id":3,"result":{"turn":{"id":"u1"}}}' '{"method":"turn/started","params":{"threadId":"th1","turn":{"id":"u1"}}}' ;;
    *) printf '%s\n' '{"id":1,"result":{"odd":"\u00e9","n":1.50}}' ;;
  esac
done
exit 7
"#;

pub const SAID: [&str; 3] = [
    r#"{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor","version":"1"}}}"#,
    r#"{"method":"thread/start","id":2,"params":{}}"#,
    r#"{"method":"turn/start","id":3,"params":{"threadId":"th1","input":[{"type":"text","text":"Hello."}]}}"#,
];

pub struct AppServerClient {
    pub child: Child,
    answers: BufReader<ChildStdout>,
}

impl AppServerClient {
    pub fn begin(steno: &Steno, server: &[&str]) -> Self {
        let args: Vec<&str> = ["app-server", "--"].iter().chain(server).copied().collect();
        Self::of(steno.command(&args))
    }

    /// Starts a command that is already configured.
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn hear(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    /// Closes the connection; returns the rest of the output, the exit code and stderr.
    pub fn end(mut self) -> (String, i32, String) {
        drop(self.child.stdin.take());
        let (mut rest, mut talk) = (String::new(), String::new());
        self.answers.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1), talk)
    }
}

/// Returns the records of a thread, in order.
pub fn spine(steno: &Steno, thread: &str) -> Vec<Value> {
    let dir = steno.store().join("spine").join(thread);
    let segments = (0..).map(|index| fs::read_to_string(dir.join(format!("segment-{index:03}.jsonl"))));
    let text: String = segments.map_while(Result::ok).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(records: &'a [Value], name: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == name).collect()
}

#[test]
fn both_sides_get_every_byte_and_a_run_and_a_spine_are_recorded() {
    let steno = Steno::new();
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", SERVER]);
    connected.say(SAID[0]);
    assert_eq!(connected.hear(), "{\"id\":1,\"result\":{\"odd\":\"\\u00e9\",\"n\":1.50}}\n");
    connected.say(SAID[1]);
    connected.hear();
    connected.say(SAID[2]);
    connected.hear();
    assert!(connected.hear().contains("turn/started"));
    let (rest, code, talk) = connected.end();
    assert_eq!((rest.as_str(), code, talk.as_str()), ("", 7, ""));
    let records = spine(&steno, "th1");
    let (submissions, events) = (of_type(&records, "submission"), of_type(&records, "event"));
    assert_eq!((submissions.len(), events.len()), (3, 4), "each message is one record");
    let tickets: Vec<u64> =
        records.iter().filter_map(|record| record["payload"]["rpc"]["ticket"].as_u64()).collect();
    assert_eq!(tickets, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(of_type(&records, "turn_context")[0]["payload"]["context"]["model"], "m");
    let said = steno.run(&["ls"]);
    assert!(said.code == 0 && said.out.contains("codex"), "{said:?}");
    // The vault has the connection; its own file is gone.
    assert_eq!(fs::read_dir(steno.store().join("connections")).unwrap().count(), 0);
    // The run has ended with the server, and says how.
    let ends = completions(&steno);
    assert_eq!(ends, [serde_json::json!({"name": "codex", "kind": "session", "exit_code": 7})]);
    assert_eq!(steno.run(&["verify"]).code, 0);
}

/// Returns the `run.completed` events of all runs.
fn completions(steno: &Steno) -> Vec<Value> {
    let mut ends = Vec::new();
    for entry in fs::read_dir(steno.store().join("transcripts")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        ends.extend(
            events.filter(|event| event["type"] == "run.completed").map(|event| event["payload"].clone()),
        );
    }
    ends
}

#[test]
fn signal_that_ended_the_server_is_recorded() {
    let steno = Steno::new();
    let script = format!("{}\nkill -KILL $$", SERVER.replace("exit 7", ""));
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", &script]);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    let (_, code, talk) = connected.end();
    assert_eq!((code, talk.as_str()), (128 + 9, ""));
    assert_eq!(completions(&steno)[0]["signal"], 9);
}

#[test]
fn killed_recorder_loses_nothing_it_wrote() {
    let steno = Steno::new();
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", SERVER]);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    connected.hear();
    let dir = steno.store().join("connections");
    let spooled = || {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        entries.map(|entry| fs::read_to_string(entry.path()).unwrap().lines().count()).sum::<usize>()
    };
    wait_until("all is written", || spooled() == 7);
    let said = steno.run(&["verify"]);
    assert!(
        said.code == 0 && said.out.contains("7 messages") && said.out.contains(", being recorded"),
        "{said:?}"
    );
    connected.child.kill().unwrap();
    connected.child.wait().unwrap();
    let said = steno.run(&["verify"]);
    assert!(said.code == 0 && said.out.contains("left by a crash, `steno import` archives it"), "{said:?}");
    // The killed recorder was writing this line.
    let path = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"dir\":\"c2s\",\"t\":1").unwrap();
    let said = steno.run(&["import"]);
    assert_eq!(said.code, 0, "{said:?}");
    let records = spine(&steno, "th1");
    assert_eq!((of_type(&records, "submission").len(), of_type(&records, "event").len()), (3, 4));
    assert!(records.iter().zip(1..).all(|(record, seq)| record["seq"] == seq));
    assert!(steno.run(&["ls"]).out.contains("codex"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    // No message is repeated, and the end of the server is unknown.
    steno.run(&["import"]);
    assert_eq!(spine(&steno, "th1").len(), records.len());
    assert!(completions(&steno).is_empty());
}

#[test]
fn signals_reach_the_server_and_its_exit_code_is_returned() {
    let steno = Steno::new();
    let script = "trap 'exit 9' TERM; printf 'ready\\n'; while :; do sleep 0.05; done";
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", script]);
    assert_eq!(connected.hear(), "ready\n");
    let pid = connected.child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert_eq!(connected.child.wait().unwrap().code(), Some(9));
    let mut killed = AppServerClient::begin(&steno, &["sh", "-c", "kill -KILL $$"]);
    assert_eq!(killed.child.wait().unwrap().code(), Some(128 + 9));
}

#[test]
fn server_that_cannot_start_is_an_error() {
    let steno = Steno::new();
    let said = steno.run(&["app-server", "--", "/nothing/there"]);
    assert!(said.code == 3 && said.err.contains("/nothing/there") && said.err.contains("hint:"), "{said:?}");
    let said = steno.run(&["app-server"]);
    assert_eq!(said.code, 2, "{said:?}");
}

/// A server that sends endless numbered messages about two threads.
const TALKATIVE: &str = r#"
IFS= read -r line; printf '%s\n' '{"id":2,"result":{"thread":{"id":"th1"}}}'
n=0
while :; do
  n=$((n + 1))
  printf '{"method":"item/updated","params":{"threadId":"th%s","n":%s}}\n' $((n % 2 + 1)) $n
done
"#;

/// After a kill at any point, the spines have every written message once and in order.
#[test]
fn kills_at_any_moment_lose_and_repeat_nothing() {
    let kills: u64 = std::env::var("STENO_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let (mut torn, mut messages) = (0, 0);
    for round in 0..kills {
        let steno = Steno::new();
        let mut connected = AppServerClient::begin(&steno, &["sh", "-c", TALKATIVE]);
        connected.say(SAID[1]);
        let spool = || {
            let entries = fs::read_dir(steno.store().join("connections")).into_iter().flatten();
            entries.flatten().next().map(|entry| fs::read(entry.path()).unwrap()).unwrap_or_default()
        };
        // Kills within the first thousands of messages; the client has to read them.
        let AppServerClient { mut child, mut answers } = connected;
        let reading = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()));
        wait_until("so much was written", || spool().len() as u64 >= round * 3571 % 100_000);
        child.kill().unwrap();
        child.wait().unwrap();
        reading.join().unwrap().unwrap();
        let spooled = spool();
        let whole = spooled.split(|byte| *byte == b'\n').count() - 1;
        torn += usize::from(spooled.last().is_some_and(|byte| *byte != b'\n'));
        messages += whole;
        let said = steno.run(&["import"]);
        assert_eq!(said.code, 0, "round {round}: {said:?}");
        let mut tickets = Vec::new();
        let dirs = fs::read_dir(steno.store().join("spine")).into_iter().flatten().flatten();
        for thread in dirs.map(|dir| dir.file_name().into_string().unwrap()) {
            let records = spine(&steno, &thread);
            assert!(records.iter().zip(1..).all(|(record, seq)| record["seq"] == seq), "round {round}");
            let of_it: Vec<u64> =
                records.iter().filter_map(|record| record["payload"]["rpc"]["ticket"].as_u64()).collect();
            assert!(of_it.is_sorted(), "round {round}");
            tickets.extend(of_it);
        }
        tickets.sort_unstable();
        assert_eq!(tickets, (1..=whole as u64).collect::<Vec<_>>(), "round {round}");
    }
    assert!(messages as u64 > kills * 10, "{messages} messages, {torn} torn ends");
}

/// On a full disk only the record is lost, and this is reported.
#[test]
fn unrecorded_messages_are_forwarded_and_counted() {
    let steno = Steno::new();
    let mut command = steno.shell("ulimit -f 8 && exec \"$0\" \"$@\"", &["app-server", "--", "cat"]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = "{\"method\":\"x\",\"params\":{\"threadId\":\"th1\"}}\n".repeat(2000);
    let mut stdin = child.stdin.take().unwrap();
    let sending = std::thread::spawn({
        let said = said.clone();
        move || stdin.write_all(said.as_bytes())
    });
    let output = child.wait_with_output().unwrap();
    sending.join().unwrap().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout == said.as_bytes(), "{} bytes: {talk}", output.stdout.len());
    let told = talk.contains("WARN forwarded but not recorded: ") && talk.contains("File too large");
    assert!(output.status.code() == Some(0) && told, "{talk}");
}

/// Without any record, client and server work as usual, and two warnings are printed.
#[test]
fn read_only_store_does_not_stop_the_server() {
    let steno = Steno::new();
    // Not even root can create a directory below a file.
    fs::write(steno.dir.path().join("file"), "").unwrap();
    let mut command = steno.command(&["--store", "file/store", "app-server", "--", "sh", "-c", SERVER]);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap());
    let mut connected = AppServerClient { child, answers };
    for line in SAID {
        connected.say(line);
        assert!(connected.hear().contains("\"id\":"));
    }
    connected.hear();
    let (rest, code, talk) = connected.end();
    assert_eq!((rest.as_str(), code), ("", 7), "{talk}");
    let (before, after) = talk.split_once("NOTHING IS RECORDED").unwrap();
    assert!(!before.contains("RECORDED") && after.contains("file/store"), "{talk}");
    assert!(after.contains("NOTHING WAS RECORDED of this connection"), "{talk}");
    // A server that cannot be started is still a failure.
    let said = steno.run(&["--store", "file/store", "app-server", "--", "/nothing/there"]);
    assert_eq!(said.code, 3, "{said:?}");
}

/// The repository state of the first turn is recorded with the spine.
#[test]
fn repository_state_is_recorded_with_the_session() {
    steno_testkit::needs!(steno_testkit::tool("git"), "git is not installed");
    let steno = Steno::new();
    let work = steno.dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        let done = Command::new("git").arg("-C").arg(&work).args(identity).args(args).output();
        assert!(done.unwrap().status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "https://zq7name:zq7password@example.com/shop.git"]);
    fs::write(work.join("kept.txt"), "one\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    fs::write(work.join("kept.txt"), "two\n").unwrap();
    // The number of git calls does not depend on the number of branches and new files.
    for number in 0..30_u8 {
        git(&["update-ref", &format!("refs/remotes/origin/branch-{number}"), "HEAD"]);
        fs::write(work.join(format!("new {number}.txt")), "new\n").unwrap();
        fs::write(work.join(format!("new {number}.bin")), [0, number]).unwrap();
    }
    let (bin, calls) = (steno.dir.path().join("bin"), steno.dir.path().join("calls"));
    fs::create_dir(&bin).unwrap();
    let real = steno_testkit::tool("git").unwrap();
    let wrapper = format!("#!/bin/sh\necho call >>'{}'\nexec '{}' \"$@\"\n", calls.display(), real.display());
    fs::write(bin.join("git"), wrapper).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let server = SERVER.replace("\"/w\"", &format!("\"{}\"", work.display()));
    let mut command = steno.command(&["app-server", "--", "sh", "-c", &server]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let mut connected = AppServerClient::of(command);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    assert_eq!(connected.end().1, 7);
    let records = spine(&steno, "th1");
    let [info, diff] = of_type(&records, "artifact_ref")[..] else { panic!("{records:?}") };
    assert_eq!(
        (&info["payload"]["kind"], &diff["payload"]["kind"]),
        (&"git_info".into(), &"git_diff".into())
    );
    assert_eq!(info["payload"]["git"]["commit_hash"], diff["payload"]["base_sha"]);
    assert_eq!(info["payload"]["git"]["repository_url"], "https://example.com/shop.git");
    assert_eq!(places_of(&steno.store(), "zq7"), Vec::<String>::new(), "whose repository it is");
    let dir = steno.store().join("spine/th1");
    let patch = fs::read_to_string(dir.join(diff["payload"]["artifact_path"].as_str().unwrap())).unwrap();
    assert!(patch.contains("-one\n+two\n"), "{patch}");
    assert_eq!(patch.matches("\n+new\n").count(), 30, "{patch}");
    assert_eq!(patch.matches("\nGIT binary patch\nliteral 2\n").count(), 30, "{patch}");
    // Status, address, base and diff.
    assert_eq!(fs::read_to_string(&calls).unwrap().lines().count(), 4);
    let said = steno.run(&["spine", "validate", "th1"]);
    assert!(said.code == 0 && said.out.starts_with("valid"), "{said:?}");
}

/// Of requests for tokens of the account, and their answers, only method, id and length are recorded.
#[test]
fn account_tokens_are_forwarded_and_not_stored() {
    const SERVER: &str = r#"
while IFS= read -r line; do
  case "$line" in
    *thread/start*) printf '%s\n' '{"id":2,"result":{"thread":{"id":"th1","cwd":"/w"},"model":"m"}}' ;;
    *login*) printf '%s\n' '{"id":9,"method":"account/chatgptAuthTokens/refresh","params":{"reason":"zq7asked"}}' ;;
    *) printf '{"method":"heard","params":{"bytes":%s}}\n' "${#line}" ;;
  esac
done
"#;
    const LOGIN: &str =
        r#"{"method":"account/login/start","id":8,"params":{"type":"apiKey","apiKey":"zq7key"}}"#;
    const GIVEN: &str = r#"{"id":9,"result":{"accessToken":"zq7token","chatgptAccountId":"a"}}"#;
    let steno = Steno::new();
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", SERVER]);
    connected.say(SAID[1]);
    connected.hear();
    connected.say(LOGIN);
    assert!(connected.hear().contains("zq7asked"), "the client is asked");
    connected.say(GIVEN);
    let heard = format!("{{\"method\":\"heard\",\"params\":{{\"bytes\":{}}}}}\n", GIVEN.len());
    assert_eq!(connected.hear(), heard, "the server has got the token");
    assert_eq!(connected.end().1, 0);
    assert_eq!(places_of(&steno.store(), "zq7"), Vec::<String>::new());
    for (what, len) in
        [("\"method\":\"account/login/start\",\"id\":8", LOGIN.len()), ("\"id\":9", GIVEN.len())]
    {
        let kept = format!("{{{what},\"withheld\":true,\"bytes\":{len}}}");
        assert!(!places_of(&steno.store(), &kept).is_empty(), "{kept}");
    }
}
