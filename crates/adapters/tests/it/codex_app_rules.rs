//! Rules for connections to Codex's app-server, tested with hand-written messages; `>` marks those of the client.

use serde_json::Value;
use steno_adapters::{AdapterEntry, Sink, Source, codex};
use steno_model::{Draft, EntrySource, Frame, RunId};

use crate::adapter_output::{Made, made_of_lines, outline, pieces_of_lines};

const START: [&str; 2] = [
    r#">{"id":1,"method":"thread/start","params":{"cwd":"/w"}}"#,
    r#"{"id":1,"result":{"thread":{"id":"t1","cliVersion":"0.166.0"},"model":"m1","approvalPolicy":"untrusted"}}"#,
];

const TURN: [&str; 3] = [
    r#">{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go"}]}}"#,
    r#"{"id":2,"result":{"turn":{"id":"u1","status":"inProgress"}}}"#,
    r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}},"emittedAtMs":1794727401281}"#,
];

fn app_server(lines: &[&str]) -> Made {
    made_of_lines(codex::app_server(Source::named("s1")), lines)
}

/// Reads messages inside the first turn and compares their events.
#[track_caller]
fn check(lines: &[&str], want: &[&str]) {
    let all: Vec<&str> = START.iter().chain(&TURN).chain(lines).copied().collect();
    let shown = outline(&app_server(&all));
    assert_eq!(shown[..3], [": run", "turn-0001: turn turn-0001 begins", "turn-0001: user text Go"]);
    assert_eq!(shown[3..], *want);
}

fn command(moment: &str, id: &str, rest: &str) -> String {
    format!(
        r#"{{"method":"item/{moment}","params":{{"threadId":"t1","turnId":"u1","item":{{"type":"commandExecution","id":"{id}","command":"ls"{rest}}}}}}}"#
    )
}

#[test]
fn sent_prompt_and_its_echo_are_one_message() {
    let echo = r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","id":"i1","content":[{"type":"text","text":"Go"}]}}}"#;
    check(&[echo], &[]);
    // A second echo with the same text belongs to a prompt of another client.
    check(&[echo, echo], &["turn-0001: user text Go"]);
}

#[test]
fn turn_has_its_id_and_settings() {
    let made = app_server(&[&START[..], &TURN[..]].concat());
    let turn = made.steps("step.started", "turn")[0];
    assert_eq!(turn["turn_id"], "u1");
    assert_eq!(turn["settings"], serde_json::json!({"model": "m1", "approval_policy": "untrusted"}));
    assert_eq!(made.payloads("run.started")[0]["source"]["version"], "0.166.0");
}

#[test]
fn steering_prompt_belongs_to_the_running_turn() {
    check(
        &[
            r#">{"id":3,"method":"turn/steer","params":{"threadId":"t1","expectedTurnId":"u1","input":[{"type":"text","text":"Faster"}]}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","content":[{"type":"text","text":"Faster"}]}}}"#,
        ],
        &["turn-0001: user text Faster"],
    );
}

#[test]
fn turn_refused_by_the_server_begins_and_fails() {
    let lines = [START[0], START[1], TURN[0], r#"{"error":{"code":-32600,"message":"busy"},"id":2}"#];
    assert_eq!(
        outline(&app_server(&lines)),
        [
            ": run",
            ": error turn/start busy",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
            "turn-0001: turn turn-0001 busy",
        ]
    );
}

#[test]
fn prompt_without_an_answer_is_kept() {
    let lines = [START[0], START[1], TURN[0]];
    let want = [": run", "turn-0001: turn turn-0001 begins", "turn-0001: user text Go"];
    assert_eq!(outline(&app_server(&lines)), want);
}

#[test]
fn first_answer_to_a_request_counts() {
    check(
        &[
            &command("started", "c1", r#","status":"inProgress""#),
            r#"{"id":0,"method":"item/commandExecution/requestApproval","params":{"threadId":"t1","itemId":"c1","command":"ls"}}"#,
            r#">{"id":0,"result":{"decision":"decline"}}"#,
            r#">{"id":0,"result":{"decision":"accept"}}"#,
            r#"{"method":"serverRequest/resolved","params":{"threadId":"t1","requestId":0}}"#,
            &command("completed", "c1", r#","status":"declined","exitCode":null"#),
        ],
        &[
            "turn-0001: assistant tool_use commandExecution",
            r#"turn-0001: call c1 commandExecution {"command":"ls"}"#,
            "turn-0001.approval: approval 0 begins",
            r#"turn-0001.approval: approval 0 {"by":"host","decision":"denied","raw":"decline","scope":"once"}"#,
            r#"turn-0001: result c1 denied """#,
        ],
    );
}

#[test]
fn approval_request_before_its_call_creates_the_call() {
    check(
        &[
            r#"{"id":"r","method":"item/commandExecution/requestApproval","params":{"threadId":"t1","itemId":"c1","command":"ls","cwd":"/w"}}"#,
            r#">{"id":"r","result":{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}}}}"#,
            &command("started", "c1", ""),
        ],
        &[
            "turn-0001: assistant tool_use commandExecution",
            r#"turn-0001: call c1 commandExecution {"command":"ls","cwd":"/w"}"#,
            "turn-0001.approval: approval r begins",
            r#"turn-0001.approval: approval r {"by":"host","decision":"allowed","raw":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["ls"]}},"scope":"always"}"#,
        ],
    );
}

#[test]
fn elicitation_belongs_to_the_open_call_of_its_server() {
    let item = |moment: &str, rest: &str| {
        format!(
            r#"{{"method":"item/{moment}","params":{{"threadId":"t1","item":{{"type":"mcpToolCall","id":"c1","server":"tiny","tool":"fail","arguments":{{}}{rest}}}}}}}"#
        )
    };
    check(
        &[
            &item("started", ""),
            r#"{"id":7,"method":"mcpServer/elicitation/request","params":{"threadId":"t1","serverName":"tiny","_meta":{"codex_approval_kind":"mcp_tool_call"}}}"#,
            r#">{"id":7,"error":{"code":-32601,"message":"unsupported"}}"#,
            &item("completed", r#","status":"failed","error":{"message":"user rejected MCP tool call"}"#),
        ],
        &[
            "turn-0001: assistant tool_use mcp__tiny__fail",
            "turn-0001: call c1 mcp__tiny__fail {}",
            "turn-0001.approval: approval 7 begins",
            r#"turn-0001.approval: approval 7 {"by":"host","decision":"denied","raw":{"code":-32601,"message":"unsupported"}}"#,
            "turn-0001: result c1 denied null",
        ],
    );
}

#[test]
fn request_resolved_without_an_answer_has_an_unknown_decision() {
    check(
        &[
            r#"{"id":0,"method":"item/fileChange/requestApproval","params":{"threadId":"t1","itemId":"c1"}}"#,
            r#"{"method":"serverRequest/resolved","params":{"threadId":"t1","requestId":0}}"#,
            r#"{"id":1,"method":"item/tool/requestUserInput","params":{"threadId":"t1","itemId":"c2","questions":[]}}"#,
            r#">{"id":1,"result":{"answers":{"q":{"answers":["yes"]}}}}"#,
        ],
        &[
            "turn-0001: assistant tool_use fileChange",
            "turn-0001: call c1 fileChange null",
            "turn-0001.approval: approval 0 begins",
            r#"turn-0001.approval: approval 0 {"by":"unknown","decision":"unknown"}"#,
            "turn-0001.user_input: user_input 1 begins",
            r#"turn-0001.user_input: user_input 1 {"answers":{"q":{"answers":["yes"]}}}"#,
        ],
    );
}

#[test]
fn client_tool_is_one_call_in_items_and_requests() {
    let item = |moment: &str| {
        format!(
            r#"{{"method":"item/{moment}","params":{{"threadId":"t1","item":{{"type":"dynamicToolCall","id":"c1","tool":"lookup","arguments":{{"k":1}},"status":"completed","contentItems":[]}}}}}}"#
        )
    };
    check(
        &[
            &item("started"),
            r#"{"id":0,"method":"item/tool/call","params":{"threadId":"t1","callId":"c1","tool":"lookup","arguments":{"k":1}}}"#,
            r#">{"id":0,"result":{"contentItems":[{"type":"inputText","text":"v"}],"success":true}}"#,
            &item("completed"),
        ],
        &[
            "turn-0001: assistant tool_use lookup",
            r#"turn-0001: call c1 lookup {"k":1}"#,
            r#"turn-0001: result c1 ok [{"text":"v","type":"inputText"}]"#,
        ],
    );
}

#[test]
fn interrupted_command_stays_open() {
    check(
        &[
            &command("started", "c1", ""),
            r#">{"id":9,"method":"turn/interrupt","params":{"threadId":"t1","turnId":"u1"}}"#,
            r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"interrupted"}}}"#,
        ],
        &[
            "turn-0001: assistant tool_use commandExecution",
            r#"turn-0001: call c1 commandExecution {"command":"ls"}"#,
            "turn-0001: turn turn-0001 interrupted",
        ],
    );
}

#[test]
fn every_event_of_a_subagent_run_names_its_parent() {
    let item = |moment: &str, item: &str| {
        format!(r#"{{"method":"item/{moment}","params":{{"threadId":"t1","item":{{{item}}}}}}}"#)
    };
    let call = |receivers: &str| {
        format!(
            r#""type":"collabAgentToolCall","id":"c1","tool":"spawnAgent","prompt":"Count","receiverThreadIds":{receivers},"status":"completed""#
        )
    };
    check_child(&item("started", &call("[]")), &item("completed", &call(r#"["t2"]"#)));
    // The newer kind of subagent has no such call.
    let activity = r#""type":"subAgentActivity","id":"c1","kind":"started","agentThreadId":"t2","agentPath":"/team/kid""#;
    check_child(&item("started", activity), &item("completed", activity));
}

/// Reads events of a subagent between the start and the end of the item that created it.
#[track_caller]
fn check_child(begins: &str, ends: &str) {
    let lines = [
        START[0],
        START[1],
        begins,
        r#"{"method":"warning","params":{"threadId":"t2","message":"careful"}}"#,
        r#"{"method":"turn/started","params":{"threadId":"t2","turn":{"id":"u2"}}}"#,
        ends,
    ];
    let made = app_server(&lines);
    let of_child: Vec<&Value> =
        made.events.iter().filter(|event| !event["parent_run_id"].is_null()).collect();
    let shown: Vec<&Value> = of_child.iter().map(|event| &event["type"]).collect();
    assert_eq!(shown, ["run.started", "step.completed", "step.started"]);
    let link = made.events.iter().find(|event| event["type"] == "step.call_workflow.started").unwrap();
    assert_eq!(link["child_run_id"], of_child[0]["run_id"]);
    assert_eq!(link["run_id"], of_child[0]["parent_run_id"]);
}

#[test]
fn first_total_of_a_fork_is_its_baseline() {
    let total = |input: u64, last: u64| {
        format!(
            r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"t2","tokenUsage":{{"total":{{"inputTokens":{input}}},"last":{{"inputTokens":{last}}}}}}}}}"#
        )
    };
    let made = app_server(&[
        START[0],
        START[1],
        r#">{"id":5,"method":"thread/fork","params":{"threadId":"t1"}}"#,
        r#"{"id":5,"result":{"thread":{"id":"t2","forkedFromId":"t1"},"model":"m1"}}"#,
        &total(500, 20),
        r#"{"method":"turn/started","params":{"threadId":"t2","turn":{"id":"u2"}}}"#,
        &total(510, 10),
        &total(510, 10),
    ]);
    let parent = &made.events[0]["run_id"];
    assert_eq!(made.payloads("run.started")[1]["forked_from"]["run_id"], *parent);
    let used: Vec<String> = outline(&made).into_iter().filter(|line| line.contains("used")).collect();
    assert_eq!(used, [r#"turn-0001: assistant used {"inputTokens":10} response"#]);
}

#[test]
fn error_with_will_retry_is_a_retry() {
    check(
        &[
            r#"{"method":"error","params":{"threadId":"t1","willRetry":true,"error":{"message":"Reconnecting... 1/5"}}}"#,
            r#"{"method":"error","params":{"threadId":"t1","willRetry":false,"error":{"message":"gone"}}}"#,
            r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"failed","error":{"message":"gone"}}}}"#,
        ],
        &[
            "turn-0001: retry api Reconnecting... 1/5",
            "turn-0001: error api gone",
            "turn-0001: turn turn-0001 gone",
        ],
    );
}

#[test]
fn account_tokens_are_not_recorded() {
    let lines = [
        START[0],
        START[1],
        r#"{"id":0,"method":"account/chatgptAuthTokens/refresh","params":{"reason":"unauthorized"}}"#,
        r#">{"id":0,"result":{"accessToken":"secret"}}"#,
    ];
    assert_eq!(outline(&app_server(&lines)), [": run"]);
}

#[test]
fn unknown_messages_are_counted_by_method() {
    let made = app_server(&[
        r#"{"method":"holodeck/opened","params":{}}"#,
        START[0],
        START[1],
        r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"tricorder","id":"x"}}}"#,
        r#"{"id":3,"method":"item/teleport","params":{"threadId":"t1"}}"#,
        r#"{"method":"configWarning","params":{"summary":"x"}}"#,
    ]);
    let unknown: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["holodeck/opened", "item.tricorder", "request.item/teleport"]);
    assert_eq!(made.steps("step.completed", "unknown").len(), 3);
}

/// Collects the types of entries.
#[derive(Default)]
struct Entries(Vec<String>);

impl Sink for Entries {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        assert_eq!((entry.adapter, entry.detail_name), ("codex_app_server", "notification"));
        let subtype = entry.subtype.map(|subtype| format!("({subtype})")).unwrap_or_default();
        assert_eq!(*entry.source, EntrySource::Main);
        self.0.push(format!("{}{subtype}", entry.entry_type));
    }
}

#[test]
fn entry_types_match_the_specification() {
    let item = |moment: &str, item: &str| {
        format!(r#"{{"method":"item/{moment}","params":{{"threadId":"t1","item":{item}}}}}"#)
    };
    let lines = [
        START[0],
        START[1],
        TURN[0],
        TURN[1],
        TURN[2],
        &item("completed", r#"{"type":"userMessage","content":[{"type":"text","text":"Go"}]}"#),
        &item("completed", r#"{"type":"reasoning","id":"r1","summary":["Hm."]}"#),
        r#"{"method":"item/reasoning/completed","params":{"threadId":"t1","itemId":"r2","text":"Hm."}}"#,
        r#"{"method":"item/agentMessage/delta","params":{"threadId":"t1","itemId":"m1","delta":"Do"}}"#,
        &item("completed", r#"{"type":"agentMessage","id":"m1","text":"Done"}"#),
        &item("started", r#"{"type":"webSearch","id":"w1","query":""}"#),
        &item("completed", r#"{"type":"webSearch","id":"w1","query":"q"}"#),
        r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"t1","tokenUsage":{"total":{"inputTokens":1}}}}"#,
        &item("completed", r#"{"type":"contextCompaction","id":"k1"}"#),
        r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"failed"}}}"#,
    ];
    let (mut adapter, mut entries, mut offset) =
        (codex::app_server(Source::named("s1")), Entries::default(), 0);
    for (lane, bytes) in pieces_of_lines(&lines) {
        let frame = Frame { lane, generation: 0, offset, unpacked: None, captured: None, bytes: &bytes };
        adapter.feed(frame, &mut entries);
        offset += bytes.len() as u64;
    }
    assert_eq!(
        entries.0,
        [
            // The request for the thread, and its answer.
            "unknown",
            "unknown",
            "user_message",
            // The answer, the turn's beginning, and the prompt as an item.
            "unknown",
            "unknown",
            "unknown",
            "thinking",
            "thinking",
            "assistant_message",
            "tool_use",
            "tool_result",
            "token_usage",
            "system_event(compaction)",
            "error",
        ]
    );
}
