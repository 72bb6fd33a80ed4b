//! Threads of connections by id: shown, exported, and forgotten with their messages.

use crate::app_server::AppServerClient;
use crate::kit::Steno;
use crate::privacy::scan::places_of;
use crate::spine::check;

const FIRST: &str = "0199aaaa-0000-7000-8000-000000000001";
const SECOND: &str = "0199bbbb-0000-7000-8000-000000000002";

/// A server that begins one thread after the other.
const SERVER: &str = r#"
next=0199aaaa-0000-7000-8000-000000000001
while IFS= read -r line; do
  case "$line" in
    *thread/start*)
      printf '%s\n' "{\"id\":2,\"result\":{\"thread\":{\"id\":\"$next\",\"cwd\":\"/w\"},\"model\":\"m\"}}"
      next=0199bbbb-0000-7000-8000-000000000002 ;;
    *turn/start*) printf '%s\n' '{"id":3,"result":{"turn":{"id":"u1"}}}' ;;
    *) printf '%s\n' '{"id":1,"result":{}}' ;;
  esac
done
"#;

/// Says something on each of these threads, over one connection.
fn connect(steno: &Steno, threads: &[&str]) {
    connect_to(steno, SERVER, threads);
}

fn connect_to(steno: &Steno, server: &str, threads: &[&str]) {
    let mut connected = AppServerClient::begin(steno, &["sh", "-c", server]);
    let mut ask = |line: &str| {
        connected.say(line);
        connected.hear();
    };
    ask(r#"{"method":"initialize","id":1,"params":{"clientInfo":{"name":"editor","version":"1"}}}"#);
    for thread in threads {
        ask(r#"{"method":"thread/start","id":2,"params":{}}"#);
        ask(&format!(
            r#"{{"method":"turn/start","id":3,"params":{{"threadId":"{thread}","input":[{{"type":"text","text":"The secret of {thread}."}}]}}}}"#
        ));
    }
    assert_eq!(connected.end().1, 0);
}

#[test]
fn forget_deletes_subagents_of_a_thread_on_a_connection() {
    let steno = Steno::new();
    let made = format!(
        r#"{{"method":"thread/started","params":{{"thread":{{"id":"{SECOND}","parentThreadId":"{FIRST}"}}}}}}"#
    );
    let server = SERVER.replace("    *turn/start*)", &format!("    *turn/start*) printf '%s\\n' '{made}';"));
    connect_to(&steno, &server, &[FIRST]);
    assert_eq!(runs(&steno), 2);
    check(&steno.run(&["forget", FIRST, "--yes"]), 0, &["forgot 1 file, 2 runs and 2 spines"]);
    assert_eq!((files_with(&steno, "The secret"), runs(&steno)), (Vec::new(), 0));
}

fn files_with(steno: &Steno, text: &str) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    steno.look().into_iter().filter(|(_, seen)| has(&seen.bytes)).map(|(name, _)| name).collect()
}

fn runs(steno: &Steno) -> usize {
    steno.run(&["ls", "--runs", "--json"]).out.lines().count()
}

#[test]
fn forget_deletes_a_connection_with_its_only_thread() {
    let steno = Steno::new();
    connect(&steno, &[FIRST]);
    connect(&steno, &[FIRST]);
    assert_eq!(runs(&steno), 2);
    let said = steno.run(&["forget", "0199aaaa", "--yes"]);
    check(&said, 0, &["forgot 2 files, 2 runs and 1 spine"]);
    assert_eq!((files_with(&steno, "The secret"), runs(&steno)), (Vec::new(), 0));
    check(&steno.run(&["show", "0199aaaa"]), 1, &["no session begins or ends with"]);
}

#[test]
fn forget_removes_one_thread_and_keeps_the_others() {
    let steno = Steno::new();
    connect(&steno, &[FIRST, SECOND]);
    let said = steno.run(&["forget", FIRST, "--yes"]);
    check(&said, 0, &["forgot 0 files, 1 run and 1 spine"]);
    assert_eq!(runs(&steno), 1);
    assert_eq!(places_of(&steno.store(), &format!("The secret of {FIRST}")), [""; 0]);
    // Everything of the other thread is unchanged.
    check(&steno.run(&["show", SECOND]), 0, &[&format!("The secret of {SECOND}.")]);
    check(&steno.run(&["verify"]), 0, &["ok"]);
    check(&steno.run(&["forget", FIRST, "--yes"]), 1, &["hint"]);
    check(&steno.run(&["forget", SECOND, "--yes"]), 0, &["forgot 1 file, 1 run and 1 spine"]);
    assert_eq!((places_of(&steno.store(), "The secret"), runs(&steno)), (Vec::new(), 0));
}

#[test]
fn thread_of_a_connection_is_found_by_id() {
    let steno = Steno::new();
    connect(&steno, &[FIRST, SECOND]);
    for name in [SECOND, "0199bbbb", "0199bbbb0000"] {
        for command in ["show", "events", "tree", "verify"] {
            check(&steno.run(&[command, name]), 0, &[]);
        }
        check(&steno.run(&["show", name]), 0, &[&format!("The secret of {SECOND}.")]);
        let said = steno.run(&["export", "atif", name, "-o", "-"]);
        check(&said, 0, &[&format!("The secret of {SECOND}.")]);
        assert!(!said.out.contains(FIRST), "{said:?}");
    }
    check(
        &steno.run(&["show", "0199"]),
        2,
        &["`0199` names 2 sessions", FIRST, SECOND, "use more characters"],
    );
    check(&steno.run(&["show", "0199cccc"]), 1, &["no session begins or ends with `0199cccc`"]);
    // A thread that was on two connections is one session of two runs; both tell of the same turn.
    connect(&steno, &[FIRST]);
    let shown = steno.run(&["show", FIRST]);
    let prompt = format!("│ The secret of {FIRST}.");
    assert_eq!((shown.code, shown.out.matches(&prompt).count()), (0, 1), "{shown:?}");
    check(&steno.run(&["events", FIRST]), 2, &["names 2 runs"]);
    let said = steno.run(&["export", "atif", FIRST, "-o", "-"]);
    assert_eq!((said.code, said.out.lines().count()), (0, 1), "{said:?}");
}
