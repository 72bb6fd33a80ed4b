//! `steno` without a command on a terminal: the sessions can be searched, read and resumed.

use serde_json::json;
use steno_testkit::{needs, tool};

use crate::kit::{RUN, Steno, run};

/// Starts `steno` on a terminal, waits for each text and presses the keys that belong to it. Prints what was on the screen
/// and the exit code.
const DRIVER: &str = r#"
import fcntl, json, os, pty, struct, sys, termios

rows, columns = int(sys.argv[2]), int(sys.argv[3])
pid, master = pty.fork()
if pid == 0:
    # The size must be known before the program asks for it.
    os.read(0, 1)
    os.execv(sys.argv[1], [sys.argv[1]])
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
os.write(master, b"\n")
seen, place = b"", 0

def read(until):
    global seen, place
    while until not in seen[place:]:
        try:
            piece = os.read(master, 4096)
        except OSError:
            return
        if not piece:
            return
        seen += piece
    place = seen.index(until, place) + len(until)

for text, keys in json.loads(sys.argv[4]):
    read(text.encode())
    os.write(master, keys.encode())
read(b"no such text")
print(json.dumps([seen.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]))
"#;

/// Returns what was on the screen, and the exit code.
fn session(steno: &Steno, rows: u32, steps: &[(&str, &str)]) -> (String, i64) {
    session_with("cat", steno, rows, steps)
}

fn session_with(pager: &str, steno: &Steno, rows: u32, steps: &[(&str, &str)]) -> (String, i64) {
    let script = format!(r#"TERM=xterm PAGER='{pager}' exec python3 -c "$1" "$0" "$2" 100 "$3""#);
    let script = script.as_str();
    let said =
        run(steno.shell(script, &[DRIVER, &rows.to_string(), &serde_json::to_string(steps).unwrap()]), b"");
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{said:?}"))
}

fn with_samples() -> Steno {
    let steno = Steno::new();
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/agents");
    assert_eq!(steno.run(&["import", samples]).code, 0);
    steno
}

const HELP: &str = "Esc leaves";

#[test]
fn picker_lists_searches_and_reads_sessions() {
    needs!(tool("python3"), "python3 is missing");
    let steno = with_samples();
    let rows = steno.run(&["ls", "--json"]).json();
    let titles: Vec<&str> = rows.iter().filter_map(|row| row["title"].as_str()).collect();
    let title = titles.last().unwrap();
    let words: Vec<&str> = title.split(' ').take(3).collect();

    // Leaving prints the state, as without a terminal.
    let (screen, code) = session(&steno, 40, &[(HELP, "\u{1b}")]);
    assert_eq!(code, 0, "{screen}");
    let after = screen.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains("steno show last") && after.contains("problems"), "{after}");
    for title in &titles {
        let begin: String = title.chars().take(20).collect();
        assert!(screen.contains(&begin), "{begin}: {screen}");
    }

    // Typed words leave one session, and Enter reads it.
    let read = [(HELP, words.join(" ")), ("1 session\u{1b}", "\r".to_owned())];
    let read: Vec<(&str, &str)> = read.iter().map(|(text, keys)| (*text, keys.as_str())).collect();
    let leave = [("press a key to return", "\u{1b}")];
    let (screen, code) = session(&steno, 40, &[&read[..], &leave].concat());
    assert_eq!(code, 0, "{screen}");
    let after = screen.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(after.contains(words[0]) && !after.contains(HELP), "{after}");

    // Any other key comes back to the list, with the words.
    let back = [("press a key to return", " "), ("1 session\u{1b}", ""), (HELP, "\u{3}")];
    let (screen, code) = session(&steno, 40, &[&read[..], &back].concat());
    assert_eq!((code, screen.matches("\u{1b}[?1049h").count()), (0, 2), "{screen}");
    // So does leaving the pager.
    let back = [("LEFT", ""), ("1 session\u{1b}", ""), (HELP, "\u{3}")];
    let pager = "cat > /dev/null; echo LEFT";
    let (screen, code) = session_with(pager, &steno, 16, &[&read[..], &back].concat());
    assert_eq!((code, screen.matches("\u{1b}[?1049h").count()), (0, 2), "{screen}");

    // Words that no title has.
    let (screen, code) = session(&steno, 40, &[(HELP, "qqzzqq"), ("no session matches", "\u{3}")]);
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn picker_prints_how_to_resume() {
    needs!(tool("python3"), "python3 is missing");
    let steno = with_samples();
    let (screen, code) = session(&steno, 30, &[(HELP, "\u{1b}[B"), (HELP, "\u{12}")]);
    assert_eq!(code, 0, "{screen}");
    let after = screen.rsplit("\u{1b}[?1049l").next().unwrap();
    let rows = steno.run(&["ls", "--json"]).json();
    let second = rows[1]["run_id"].as_str().unwrap();
    assert!(after.contains(second), "{second}: {after}");
}

#[test]
fn picker_resumes_sessions_by_the_agents_own_name() {
    needs!(tool("python3"), "python3 is missing");
    let steno = Steno::new();
    let begin = json!({ "type": "run.started", "payload": { "name": "opencode", "kind": "session", "cwd": "/srv/shop",
        "session_id": "ses_7", "source": { "adapter": "opencode/1", "provider": "opencode", "channel": "stream" } } });
    steno.recorded(RUN, &[begin]);
    let (screen, code) = session(&steno, 30, &[(HELP, "\u{12}")]);
    let after = screen.rsplit("\u{1b}[?1049l").next().unwrap();
    assert!(code == 0 && after.contains("cd /srv/shop && opencode --session ses_7"), "{after}");
}

#[test]
fn small_or_dumb_terminals_have_no_picker() {
    needs!(tool("python3"), "python3 is missing");
    let steno = with_samples();
    let (screen, code) = session(&steno, 10, &[]);
    assert!(code == 0 && screen.contains("steno show last") && !screen.contains("\u{1b}[?1049h"), "{screen}");
}
