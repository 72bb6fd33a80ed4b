//! The tree as text and as JSON.

use std::collections::BTreeMap;

use steno_model::ExchangeEvent;

use steno_session::{Content, SessionBuilder};

use super::super::{Forest, RunTree, TreeStyle, TreeTone, export, join, styled_text, text};
use super::join_runs;

type Runs<'a> = &'a [(u32, &'a [&'a str])];

#[track_caller]
fn check(runs: Runs<'_>, want: &[&str]) {
    let text = text(&join_runs(runs));
    assert_eq!(text.lines().collect::<Vec<_>>(), want, "{runs:?}");
}

#[test]
fn tree_is_drawn() {
    check(
        &[
            (
                1,
                &[
                    "run - name=review",
                    "> turn-0001 kind=turn",
                    "u turn-0001",
                    "a turn-0001",
                    "c turn-0001 call=a",
                    "r turn-0001 call=a",
                    "c turn-0001 call=b",
                    "> turn-0001.loop kind=while",
                    "> turn-0001.loop.body it=2",
                    "< turn-0001.loop.body it=2 error=exit_1",
                    ">> turn-0001.subagent name=explore kind=subagent child=2",
                    "> turn-0002 kind=turn",
                    "end",
                ],
            ),
            (
                2,
                &[
                    "run - name=child parent=1",
                    "> a kind=agent loop=0 try=1",
                    "> b loop=0,3",
                    "end - error=no",
                ],
            ),
            (3, &["run - parent=1", "r -", "future.type"]),
        ],
        &[
            "run 00000001… review  open  13 events  1 call without result",
            "├─ turn-0001 · turn  2 messages, 2 calls, 1 result  open",
            "│  ├─ turn-0001.loop · while  open",
            "│  │  └─ turn-0001.loop.body · command  iteration 2  failed: exit 1",
            "│  └─ explore · subagent",
            "│     └─ child run 00000002… child  failed: no  4 events",
            "│        ├─ a · agent  iteration 0  attempt 1  open",
            "│        └─ b · command  iteration 0.3  open",
            "├─ turn-0002 · turn  open",
            "└─ child run 00000003…  open  3 events  1 result  1 event of unknown type  unlinked",
        ],
    );
}

#[test]
fn absent_runs_say_why() {
    check(
        &[(1, &[">> a child=1", ">> b child=2", ">> c child=3", ">> d child=2"]), (2, &["end"])],
        &[
            "run 00000001…  open  4 events",
            "├─ a · command  open",
            "│  └─ child run 00000001…  cycle: this run is one of its own ancestors",
            "├─ b · command",
            "│  └─ child run 00000002…  done  1 event",
            "├─ c · command  open",
            "│  └─ child run 00000003…  missing",
            "└─ d · command",
            "   └─ child run 00000002…  shown elsewhere",
        ],
    );
}

#[test]
fn run_level_counts_are_on_the_run_line() {
    check(
        &[(1, &["run", "u -", "a -", "c -", "r -"])],
        &["run 00000001…  open  5 events  2 messages, 1 call"],
    );
    check(
        &[(1, &["u -", "> a", "u a", "c a", "r a"])],
        &[
            "run 00000001…  open  5 events  1 message outside steps",
            "└─ a · command  1 message, 1 call  open",
        ],
    );
}

#[test]
fn blocks_of_unknown_types_are_counted() {
    let line = r#"{"seq":1,"run_id":"00000001-0000-4000-8000-000000000000","type":"message.user","path":"","iteration":0,"timestamp":"","payload":{"role":"user","blocks":[{"type":"b"},{"type":"a"},{"type":"text"},{"type":"b"}]}}"#;
    let joined = join_line(line);
    assert_eq!(text(&joined), "run 00000001…  open  1 event  1 message  3 blocks of unknown type\n");
    let json = serde_json::to_string(&export(&joined)).unwrap();
    let want = r#""unknown_blocks":[{"type":"a","blocks":1},{"type":"b","blocks":2}]"#;
    assert!(json.contains(want), "{json}");
}

#[test]
fn parts_have_tones_and_tones_keep_text() {
    let joined = join_runs(&[
        (1, &["run - name=r", "> a", "< a", "> b", "< b error=no", ">> c child=3", "c c", "end"]),
        (2, &["run - parent=1"]),
    ]);
    let toned = styled_text(&joined, &TreeStyle::plain(&|tone, words| format!("<{tone:?} {words}>")));
    let want = [
        "<Frame run 00000001…> r  <Completed done>  8 events  <Odd 1 call without result>",
        "<Frame ├─ >a <Frame · command>",
        "<Frame ├─ >b <Frame · command>  <Failed failed: no>",
        "<Frame ├─ >c <Frame · command>  1 call, 0 results  <Open open>",
        "<Frame │  └─ ><Frame child run 00000003…>  <Failed missing>",
        "<Frame └─ ><Frame child run 00000002…>  <Open open>  1 event  <Odd unlinked>",
    ];
    assert_eq!(toned.lines().collect::<Vec<_>>(), want);
    let mut plain = toned.replace('>', "");
    for tone in [TreeTone::Frame, TreeTone::Completed, TreeTone::Failed, TreeTone::Open, TreeTone::Odd] {
        plain = plain.replace(&format!("<{tone:?} "), "");
    }
    assert_eq!(plain, text(&joined));
}

fn fold_line(line: &str) -> RunTree {
    let event = ExchangeEvent::parse(line.as_bytes()).unwrap();
    let mut builder = SessionBuilder::new(event.run_id, Content::Whole);
    builder.push(&event);
    RunTree::of(&builder.finish())
}

fn join_line(line: &str) -> Forest {
    let tree = fold_line(line);
    join(tree.run_id, BTreeMap::from([(tree.run_id, tree)]))
}

#[test]
fn similar_run_ids_are_shown_longer() {
    let line = |id: &str| {
        format!(r#"{{"seq":1,"run_id":"{id}","type":"run.started","path":"","iteration":0,"timestamp":""}}"#)
    };
    let ids = ["01988a3c-1111-7000-8000-000000000000", "01988a3c-1122-7000-8000-000000000000"];
    let [first, second] = ids.map(|id| fold_line(&line(id)));
    let joined = join(first.run_id, [(first.run_id, first), (second.run_id, second)].into());
    assert_eq!(text(&joined), "run 01988a3c-111…  open  1 event\n");
}

/// A step with hostile text in every field: OSC 52, OSC 8, CSI 2J, C1 CSI, bidi override, line breaks.
const HOSTILE: &str = r#"{"seq":1,"run_id":"00000001-0000-4000-8000-000000000000","type":"step.completed","path":"a\u001b]52;c;cm0=\u0007","iteration":0,"timestamp":"\u001b[2J","payload":{"name":"\u001b]8;;http://x\u001b\\y","kind":"\u009b2J\u202e","error":"one\ntwo\r\t\u007f"}}"#;

#[test]
fn hostile_text_is_escaped() {
    let want = "run 00000001…  open  1 event\n\
        └─ \\u{1b}]8;;http://x\\u{1b}\\y · \\u{9b}2J\\u{202e}  failed: one\\u{a}two\\u{d}\\u{9}\\u{7f}\n";
    assert_eq!(text(&join_line(HOSTILE)), want);
}

#[test]
fn long_text_is_cut_in_lines_only() {
    let error = "é".repeat(10_000);
    let joined = join_runs(&[(1, &[format!("< a error={error}")])]);
    let want = format!("run 00000001…  open  1 event\n└─ a · command  failed: {}…\n", "é".repeat(200));
    assert_eq!(text(&joined), want);
    assert!(serde_json::to_string(&export(&joined)).unwrap().contains(&error));
}

#[test]
fn steps_without_a_name_have_a_label() {
    let line = r#"{"seq":1,"run_id":"00000001-0000-4000-8000-000000000000","type":"step.started","path":"PATH","iteration":0,"timestamp":"","payload":7}"#;
    let at_run_level = join_line(&line.replace("PATH", ""));
    assert_eq!(text(&at_run_level), "run 00000001…  open  1 event\n└─ step without name  open\n");
    assert_eq!(
        text(&join_line(&line.replace("PATH", "a.b"))),
        "run 00000001…  open  1 event\n└─ a.b  open\n"
    );
}

#[test]
fn json_has_every_field() {
    let joined = join_runs(&[(1, &["run - name=r", "> a loop=0 try=1", ">> b child=2", "c -", "x.y"])]);
    assert_eq!(serde_json::to_string(&export(&joined)).unwrap(), WANT_JSON.replace('\n', ""));
}

const WANT_JSON: &str = r#"{
"node":"run","depth":0,"below":null,"join":null,
"run_id":"00000001-0000-4000-8000-000000000000","parent_run_id":null,"session_run_id":null,"forked_from":null,
"name":"r","kind":"command","state":"open","session_state":"open","error":null,
"started_at":"2026-06-08T00:00:01Z","ended_at":null,"run_last":"00000001-0000-4000-8000-000000000000","seq_last":5,"events":5,
"messages":0,"calls":1,"results":0,"failed":0,"denied":0,"dangling_calls":["call-1"],
"unknown_types":[{"type":"x.y","events":1}],"unknown_blocks":[],"foreign_events":0,"children":[
{"node":"step","depth":1,"below":{"run_id":"00000001-0000-4000-8000-000000000000","run":null,"seq":null},
"path":"a","name":"a","kind":"command","iteration":0,"loop":[0],"attempt":1,"tool_call_id":null,"tool_name":null,
"decision":null,"state":"open","error":null,"run_started":"00000001-0000-4000-8000-000000000000","seq_started":2,"run_completed":null,"seq_completed":null,
"started_at":"2026-06-08T00:00:02Z","ended_at":null,"child_run_id":null,
"messages":0,"calls":0,"results":0,"failed":0,"denied":0,"children":[]},
{"node":"step","depth":1,"below":{"run_id":"00000001-0000-4000-8000-000000000000","run":null,"seq":null},
"path":"b","name":"b","kind":"command","iteration":0,"loop":null,"attempt":null,"tool_call_id":null,"tool_name":null,
"decision":null,"state":"open","error":null,"run_started":"00000001-0000-4000-8000-000000000000","seq_started":3,"run_completed":null,"seq_completed":null,
"started_at":"2026-06-08T00:00:03Z","ended_at":null,"child_run_id":"00000002-0000-4000-8000-000000000000",
"messages":0,"calls":0,"results":0,"failed":0,"denied":0,"children":[
{"node":"absent","depth":2,"below":{"run_id":"00000001-0000-4000-8000-000000000000","run":"00000001-0000-4000-8000-000000000000","seq":3},
"join":"missing","run_id":"00000002-0000-4000-8000-000000000000","children":[]}]}]}"#;

#[test]
fn texts_keep_their_tokens() {
    let line = HOSTILE.replace(r"\u202e", r"\ud800");
    let json = serde_json::to_string(&export(&join_line(&line))).unwrap();
    assert!(json.contains(r#""kind":"\u009b2J\ud800""#), "{json}");
}
