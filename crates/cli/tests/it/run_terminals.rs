//! `steno run` on a terminal: what is a terminal stays one, keys and sizes get through, and ours is restored.

use std::process::Command;

use serde_json::Value;
use steno_testkit::{needs, tool};

use crate::kit::{Steno, json, program, run};

/// Runs programs on a terminal. Each test is a function; the result is one JSON value.
const DRIVER: &str = r#"
import fcntl, json, os, pty, signal, struct, sys, termios, time

STENO = sys.argv[1]

def start(words, closed=()):
    """Starts a program on a new terminal; the streams in `closed` are files instead."""
    pid, master = pty.fork()
    if pid == 0:
        for number in closed:
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open("/dev/null" if number == 0 else f"stream{number}", flags, 0o600), number)
        os.execvp(words[0], words)
    return pid, master

def size(master, rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

def read_until(master, text):
    seen = b""
    while text not in seen:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    return seen.decode(errors="replace")

def finish(pid, master):
    rest = read_until(master, b"no such text")
    return rest, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def wrapped(*words):
    return [STENO, "run", "--", *words]

def streams():
    test = "for i in 0 1 2; do test -t $i && printf 1 || printf 0; done > found"
    found = {}
    for mask in range(8):
        closed = [number for number in range(3) if mask >> number & 1]
        for name, words in [("plain", ["sh", "-c", test]), ("wrapped", wrapped("sh", "-c", test))]:
            pid, master = start(words, closed)
            code = finish(pid, master)[1]
            found[f"{name} {mask}"] = [open("found").read(), code]
    return found

def output():
    found = {}
    script = "printf 'a\\nb\\n'; printf 'c\\n' >&2; exit 7"
    for mask in (0, 1, 2, 3, 4, 5):
        closed = [number for number in range(3) if mask >> number & 1]
        for name, words in [("plain", ["sh", "-c", script]), ("wrapped", wrapped("sh", "-c", script))]:
            pid, master = start(words, closed)
            text, code = finish(pid, master)
            files = [open(f"stream{number}").read() for number in closed if number > 0]
            found[f"{name} {mask}"] = [text, code, files]
    return found

def window():
    pid, master = start(wrapped("sh", "-c", "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do read x; done"))
    first = read_until(master, b"ready\r\n")
    size(master, 33, 77)
    rest, code = finish(pid, master)
    return [first, rest, code]

def interrupt():
    pid, master = start(wrapped("sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do read x; done"))
    read_until(master, b"ready\r\n")
    os.write(master, b"\x03")
    text, code = finish(pid, master)
    pid, master = start(wrapped("sh", "-c", "echo ready; exec sleep 1000"))
    read_until(master, b"ready\r\n")
    os.write(master, b"\x03")
    return [text, code, finish(pid, master)[1]]

def suspend():
    # `steno` may change the modes before we read them: a new terminal has the same.
    before = termios.tcgetattr(os.openpty()[0])
    pid, master = start(wrapped("sh", "-c", "echo ready; read x; echo got $x"))
    read_until(master, b"ready\r\n")
    os.write(master, b"\x1a")
    stopped = os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    same = termios.tcgetattr(master) == before
    os.kill(pid, signal.SIGCONT)
    # What is typed before the terminal is ours again may be echoed by it.
    while termios.tcgetattr(master)[3] & termios.ICANON:
        time.sleep(0.01)
    os.write(master, b"word\n")
    text, code = finish(pid, master)
    return [stopped, same, "got word" in text, code]

def signals():
    """Sends each signal to `steno`, as `kill` does."""
    found = {}
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2"):
        script = f"trap 'echo caught {name}; exit 5' {name}; echo ready; while :; do read x; done"
        pid, master = start(wrapped("sh", "-c", script))
        read_until(master, b"ready\r\n")
        os.kill(pid, getattr(signal, "SIG" + name))
        text, code = finish(pid, master)
        found[name] = [text.strip(), code]
    pid, master = start(wrapped("sh", "-c", "echo ready; read x; echo got $x"))
    read_until(master, b"ready\r\n")
    os.kill(pid, signal.SIGTSTP)
    stopped = os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    os.kill(pid, signal.SIGCONT)
    while termios.tcgetattr(master)[3] & termios.ICANON:
        time.sleep(0.01)
    os.write(master, b"word\n")
    text, code = finish(pid, master)
    found["TSTP"] = [stopped, "got word" in text, code]
    return found

def keys():
    """Presses keys on a terminal that is none of the streams of `steno`: each program gets the signal once."""
    # It starts no program: a shell that waits for one to begin cannot stop.
    os.mkfifo("fifo")
    script = "echo $$ > pid; trap 'echo int >> heard' INT; trap 'echo cont >> heard' CONT; echo ready >> heard;" \
        " until test -e end; do read x < fifo; done; exit 4"
    # A shell with jobs: the system ignores Ctrl-Z where nobody could continue the program.
    shell = '"$0" run -- sh -c "$1" < /dev/null > stream1 2> stream2; echo $? > stopped;' \
        ' until test -e go; do sleep 0.05; done; fg; echo $? > code'
    pid, master = start(["bash", "-mc", shell, STENO, script])
    def wait(name, words):
        text, until = [], time.time() + 60
        while text[: len(words)] != words and time.time() < until:
            time.sleep(0.01)
            text = open(name).read().split() if os.path.exists(name) else []
        # A second signal would come soon.
        time.sleep(0.3)
        return open(name).read().split()
    wait("heard", ["ready"])
    os.write(master, b"\x03")
    found = [wait("heard", ["ready", "int"])]
    os.write(master, b"\x1a")
    # `steno` stops itself with SIGSTOP after the command.
    found.append(wait("stopped", [str(128 + signal.SIGSTOP)]))
    child = open("pid").read().strip()
    found.append(open(f"/proc/{child}/stat").read().rsplit(") ")[-1][0])
    open("go", "w").close()
    # Both the shell and `steno` may continue it.
    found.append(wait("heard", ["ready", "int", "cont"])[:3])
    open("end", "w").close()
    # Opened for reading too, so that it does not wait for a reader.
    writer = os.open("fifo", os.O_RDWR)
    os.write(writer, b"\n")
    finish(pid, master)
    return [*found, open("code").read()]

def background():
    """The terminal ends with the command, for the programs that it left running too."""
    script = "(trap 'echo hung up > heard; exit' HUP; echo ready; while :; do sleep 0.05; done) & read x; echo end; exit 3"
    pid, master = start(wrapped("sh", "-c", script))
    read_until(master, b"ready\r\n")
    os.write(master, b"\n")
    text, code = finish(pid, master)
    until = time.time() + 60
    while not os.path.exists("heard") and time.time() < until:
        time.sleep(0.01)
    return ["end" in text, code, open("heard").read()]

def restored():
    pid, master = start(["sh", "-c", "stty -a > before; \"$0\" run -- sh -c 'stty raw -echo; exit 4'; echo $? > code; stty -a > after", STENO])
    finish(pid, master)
    return [open("before").read() == open("after").read(), open("code").read()]

def hangup():
    pid, master = start(wrapped("sh", "-c", "trap 'echo hung up > heard; exit 0' HUP; echo ready; while :; do read x; done"))
    read_until(master, b"ready\r\n")
    os.close(master)
    os.waitpid(pid, 0)
    while not os.path.exists("heard"):
        time.sleep(0.01)
    return open("heard").read()

print(json.dumps(globals()[sys.argv[2]]()))
"#;

#[track_caller]
fn drive(steno: &Steno, test: &str) -> Value {
    let mut command: Command = steno.command(&[]);
    let envs: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    let mut python = Command::new("python3");
    python.env_clear().current_dir(steno.dir.path());
    for (name, value) in envs {
        python.env(name, value.unwrap_or_default());
    }
    command.args(["unused"]);
    python.arg("-c").arg(DRIVER).arg(program()).arg(test);
    let said = run(python, b"");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    json(&said.out)
}

#[test]
fn each_stream_stays_what_it_is() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    for test in ["streams", "output"] {
        let found = drive(&steno, test);
        let found = found.as_object().unwrap();
        let plain: Vec<_> = found.iter().filter(|(name, _)| name.starts_with("plain")).collect();
        assert!(plain.len() >= 3);
        for (name, want) in plain {
            assert_eq!(&found[&name.replace("plain", "wrapped")], want, "{test}: {name}");
        }
    }
}

#[test]
fn keys_and_sizes_reach_the_command() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    let window = drive(&steno, "window");
    assert!(window[1].as_str().unwrap().contains("33 77"), "{window}");
    assert_eq!(window[2], 0);
    let interrupt = drive(&steno, "interrupt");
    assert!(interrupt[0].as_str().unwrap().contains("caught"), "{interrupt}");
    assert_eq!((&interrupt[1], &interrupt[2]), (&5.into(), &(-2).into()));
    assert_eq!(drive(&steno, "suspend"), serde_json::json!([true, true, true, 0]));
}

#[test]
fn terminal_is_restored_and_its_end_reaches_the_command() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    assert_eq!(drive(&steno, "restored"), serde_json::json!([true, "4\n"]));
    assert_eq!(drive(&steno, "hangup"), "hung up\n");
}

#[test]
fn signals_reach_the_command_on_a_terminal() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    let found = drive(&steno, "signals");
    for name in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] {
        assert_eq!(found[name], serde_json::json!([format!("caught {name}"), 5]), "{found}");
    }
    assert_eq!(found["TSTP"], serde_json::json!([true, true, 0]));
}

#[test]
fn key_of_a_terminal_that_is_no_stream_reaches_the_command_once() {
    needs!(tool("python3"), "python3 is not installed");
    needs!(tool("bash"), "bash is not installed");
    let steno = Steno::new();
    let want = serde_json::json!([["ready", "int"], ["147"], "T", ["ready", "int", "cont"], "4\n"]);
    assert_eq!(drive(&steno, "keys"), want);
}

#[test]
fn terminal_ends_with_the_command() {
    needs!(tool("python3"), "python3 is not installed");
    let steno = Steno::new();
    assert_eq!(drive(&steno, "background"), serde_json::json!([true, 3, "hung up\n"]));
}
