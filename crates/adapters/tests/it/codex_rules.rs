//! Rules for rare cases in Codex's rollouts and streams, tested with hand-written lines.

use serde_json::Value;
use steno_adapters::{Source, codex};

use crate::adapter_output::{Made, made_of_lines, outline};

/// A thread of 2026-11-15. The time in its UUID is between those of the copied and the new turn ids below.
const META: &str = r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001","cli_version":"0.130.0","source":"cli"}}"#;

fn rollout(lines: &[&str]) -> Made {
    made_of_lines(codex::rollout(Source::named("s1")), lines)
}

fn exec(lines: &[&str]) -> Made {
    made_of_lines(codex::exec(Source::named("s1")), lines)
}

/// Reads lines after a header and compares the events after `run.started`.
#[track_caller]
fn check(lines: &[&str], want: &[&str]) {
    let mut all = vec![META];
    all.extend(lines);
    assert_eq!(outline(&rollout(&all))[1..], *want);
}

#[track_caller]
fn check_exec(lines: &[&str], want: &[&str]) {
    assert_eq!(outline(&exec(lines)), want);
}

#[test]
fn both_records_of_a_prompt_are_one_message() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}"#,
            r#"{"type":"turn_context","payload":{"turn_id":"t1","model":"m1"}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#,
            r#"{"type":"event_msg","payload":{"type":"agent_message","message":"Done"}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done"}]}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"Done"}}"#,
        ],
        &[
            ": system environment_context \"<environment_context>x</environment_context>\"",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
            "turn-0001: assistant text Done",
            "turn-0001: turn turn-0001 \"Done\"",
        ],
    );
}

#[test]
fn user_message_event_with_context_is_not_a_prompt() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"<environment_context>x</environment_context>","kind":"environment_context"}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go","kind":"plain"}}"#,
        ],
        &["turn-0001: turn turn-0001 begins", "turn-0001: user text Go"],
    );
}

#[test]
fn turn_has_its_id_and_settings() {
    let made = rollout(&[
        META,
        r#"{"type":"event_msg","payload":{"type":"turn_started","turn_id":"t1"}}"#,
        r#"{"type":"turn_context","payload":{"model":"m1","approval_policy":"never","summary":"none"}}"#,
    ]);
    let turn = made.steps("step.started", "turn")[0];
    assert_eq!(turn["turn_id"], "t1");
    assert_eq!(turn["settings"], serde_json::json!({"model": "m1", "approval_policy": "never"}));
}

#[test]
fn prompts_begin_and_end_turns_without_turn_records() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"One"}}"#,
            r#"{"type":"turn_context","payload":{"model":"m1"}}"#,
            r#"{"type":"turn_context","payload":{"model":"m1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"Two"}}"#,
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text One",
            r#"turn-0001: system turn_context {"model":"m1"}"#,
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Two",
        ],
    );
}

#[test]
fn report_gives_the_outcome_before_or_after_the_output() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"a\"}","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"c1","aggregated_output":"boom\n","exit_code":3,"status":"failed"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Process exited with code 3\nOutput:\nboom\n"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"b\"}","call_id":"c2"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"Process running"}}"#,
            r#"{"type":"event_msg","payload":{"type":"turn_aborted","turn_id":"t1","reason":"interrupted"}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t2"}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"Next"}}"#,
            r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"c2","status":"failed","aggregated_output":"x","exit_code":-1}}}"#,
        ],
        &[
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant tool_use exec_command",
            r#"turn-0001: call c1 exec_command {"cmd":"a"}"#,
            r#"turn-0001: result c1 failed "boom\n""#,
            "turn-0001: assistant tool_use exec_command",
            r#"turn-0001: call c2 exec_command {"cmd":"b"}"#,
            r#"turn-0001: result c2 unknown "Process running""#,
            "turn-0001: turn turn-0001 interrupted",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text Next",
            r#"turn-0001: amend c2 {"error":"exit code -1","exit_code":-1,"outcome":"failed","output":"x"}"#,
        ],
    );
}

#[test]
fn report_without_a_call_creates_the_call() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"u1","command":["ls"],"aggregated_output":"a\n","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"gone","output":"late"}}"#,
        ],
        &[
            ": assistant tool_use exec_command",
            r#": call u1 exec_command {"command":["ls"]}"#,
            r#": result u1 ok "a\n""#,
            ": call gone  null",
            r#": result gone unknown "late""#,
        ],
    );
}

#[test]
fn report_without_an_output_for_the_model_is_the_result() {
    check(
        &[
            r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** x","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"patch_apply_end","call_id":"c1","stdout":"ok","stderr":"","success":true,"changes":{}}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_complete"}}"#,
        ],
        &[": assistant tool_use apply_patch", r#": call c1 apply_patch "*** x""#, r#": result c1 ok "ok""#],
    );
}

#[test]
fn arguments_that_are_not_json_are_kept_with_a_mark() {
    let made = rollout(&[
        META,
        r#"{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{\"a\":","call_id":"c1"}}"#,
    ]);
    let call = made.payloads("tool.call")[0];
    assert_eq!((&call["input"], &call["input_parse_error"]), (&Value::from("{\"a\":"), &Value::from(true)));
}

#[test]
fn totals_add_only_growth_and_exact_usage_wins() {
    let total = |input: u64, last: u64| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input}}},"last_token_usage":{{"input_tokens":{last}}}}}}}}}"#
        )
    };
    let exact = r#"{"type":"token_usage_record","payload":{"response_id":"r1","usage":{"input_tokens":5}}}"#;
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#,
            &total(10, 10),
            &total(10, 10),
            &total(30, 20),
            &total(4, 4),
            exact,
            exact,
            &total(9, 5),
        ],
        &[
            r#": assistant used {"input_tokens":10} response"#,
            r#": assistant used {"input_tokens":20} response"#,
            r#": assistant used at least {"input_tokens":4} response"#,
            r#": assistant used {"input_tokens":5} response"#,
        ],
    );
}

#[test]
fn compaction_record_and_its_notice_are_one_compaction() {
    check(
        &[
            r#"{"type":"compacted","payload":{"message":"So far.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}]}}"#,
            r#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#,
            r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"ContextCompaction","id":"i1"}}}"#,
        ],
        &[
            "compaction: compaction compaction begins",
            r#"compaction: compaction compaction "So far.""#,
            "compaction: compaction compaction begins",
            "compaction: compaction compaction null",
        ],
    );
}

#[test]
fn fork_names_its_parent_and_ordinal() {
    let made = rollout(&[
        r#"{"ordinal":145,"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002","forked_from_id":"01a1de00-0000-7000-8000-000000000001","forked_from_ordinal_exclusive":145}}"#,
        r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":500},"last_token_usage":{"input_tokens":7}}}}"#,
    ]);
    let started = made.payloads("run.started")[0];
    let from = serde_json::json!({"run_id": "01a1de00-0000-7000-8000-000000000001", "ordinal": 145});
    assert_eq!(started["forked_from"], from);
    assert_eq!(outline(&made)[1..], [r#": assistant used at least {"input_tokens":7} response"#]);
}

#[test]
fn copied_records_of_a_fork_are_marked() {
    check(
        &[
            r#"{"type":"session_meta","payload":{"id":"01a1dd00-0000-7000-8000-000000000009"}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"01a1dd00-0000-7000-8000-00000000000a"}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"Old"}}"#,
            r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7},"last_token_usage":{"input_tokens":7}}}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"01a1dd00-0000-7000-8000-00000000000a"}}"#,
            r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"01a1de10-0000-7000-8000-00000000000b"}}"#,
            r#"{"type":"event_msg","payload":{"type":"user_message","message":"New"}}"#,
        ],
        &[
            r#": system session_meta {"id":"01a1dd00-0000-7000-8000-000000000009"} (copied)"#,
            "turn-0001: turn turn-0001 begins (copied)",
            "turn-0001: user text Old (copied)",
            r#"turn-0001: assistant used {"input_tokens":7} response (copied)"#,
            "turn-0001: turn turn-0001 null (copied)",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: user text New",
        ],
    );
}

#[test]
fn inherited_records_of_a_subagent_are_marked_by_ordinal() {
    let made = rollout(&[
        r#"{"ordinal":0,"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002","parent_thread_id":"01a1de00-0000-7000-8000-000000000001","subagent_history_start_ordinal":2}}"#,
        r#"{"ordinal":1,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Old"}]}}"#,
        r#"{"ordinal":2,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"New"}]}}"#,
    ]);
    assert_eq!(outline(&made)[1..], [": assistant text Old (copied)", ": assistant text New"]);
    assert_eq!(made.events[1]["copied_from"], "01a1de00-0000-7000-8000-000000000001");
}

#[test]
fn system_prompt_is_recorded_again_only_if_it_changes() {
    let header = |text: &str| {
        META.replace(r#""source""#, &format!(r#""base_instructions":{{"text":"{text}"}},"source""#))
    };
    check(
        &[&header("One."), &header("One."), META, &header("Two.")],
        &[
            ": system resume null",
            ": user text[system_prompt] One.",
            ": system resume null",
            ": system resume null",
            ": system resume null",
            ": user text[system_prompt] Two.",
        ],
    );
}

#[test]
fn repeated_header_is_a_resume() {
    check(&[META], &[": system resume null"]);
    let again = META.replace("cli\"}}", "cli\",\"memory_mode\":\"enabled\"}}");
    check(&[&again], &[": system resume null"]);
}

#[test]
fn every_event_of_a_subagent_names_its_parent() {
    let made = rollout(&[
        r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002","source":{"subagent":{"thread_spawn":{"parent_thread_id":"01a1de00-0000-7000-8000-000000000001","depth":1}}}}}"#,
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"Count"}}"#,
    ]);
    assert_eq!(made.events.len(), 3);
    assert!(made.events.iter().all(|event| event["parent_run_id"] == "01a1de00-0000-7000-8000-000000000001"));
}

#[test]
fn subagent_begins_and_ends_once_for_several_reports() {
    check(
        &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"c1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"agent_id\":\"a1\"}"}}"#,
            r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CollabAgentToolCall","id":"c2","tool":"wait","status":"completed","receiver_thread_ids":["a1"],"agents_states":{"a1":{"completed":"3"}}}}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<subagent_notification>{\"agent_path\":\"a1\",\"status\":{\"completed\":\"3\"}}</subagent_notification>"}]}}"#,
        ],
        &[
            ": assistant tool_use spawn_agent",
            ": call c1 spawn_agent {}",
            "subagent: child a1 begins",
            r#": result c1 unknown "{\"agent_id\":\"a1\"}""#,
            ": assistant tool_use wait",
            r#": call c2 wait {"receiver_thread_ids":["a1"]}"#,
            ": result c2 ok null",
            r#"subagent: child a1 ends "3""#,
            r#": system subagent_notification "<subagent_notification>{\"agent_path\":\"a1\",\"status\":{\"completed\":\"3\"}}</subagent_notification>""#,
        ],
    );
}

#[test]
fn both_records_of_a_search_are_one_call() {
    check(
        &[
            r#"{"type":"event_msg","payload":{"type":"web_search_end","call_id":"ws1","query":"q"}}"#,
            r#"{"type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}"#,
        ],
        &[
            ": assistant tool_use web_search",
            r#": call ws1 web_search {"query":"q"}"#,
            ": result ws1 ok null",
        ],
    );
}

#[test]
fn response_item_with_several_parts_is_one_message() {
    check(
        &[
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One."},{"type":"refusal","refusal":"Not two."},{"type":"dream"}]}}"#,
        ],
        &[": assistant text One., text[refusal] Not two.", ": unknown response_item.message null"],
    );
}

#[test]
fn encrypted_reasoning_is_a_redacted_thinking_block() {
    check(
        &[r#"{"type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}"#],
        &[": assistant thinking[redacted] "],
    );
}

#[test]
fn unknown_records_are_counted_by_type() {
    let made = rollout(&[
        META,
        r#"{"type":"hologram","payload":{}}"#,
        r#"{"type":"event_msg","payload":{"type":"foo"}}"#,
        r#"{"type":"response_item","payload":{"type":"bar"}}"#,
        r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Baz"}}}"#,
        "{}",
        r#"{"type":"world_state","payload":{}}"#,
    ]);
    let unknown: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
    assert_eq!(unknown, ["event_msg.foo", "hologram", "item.Baz", "record", "response_item.bar"]);
    assert_eq!((made.steps("step.completed", "unknown").len(), made.completeness.bookkeeping), (5, 1));
}

#[test]
fn bare_response_items_of_0_20_are_read() {
    let made = rollout(&[
        r#"{"id":"2db979eb-3b3d-4899-95f2-b63269e7602d","timestamp":"2025-08-01T00:00:00.000Z","instructions":"Be brief."}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"Go"}]}"#,
        r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"false\"]}","call_id":"c1"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"no\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.0}}"}"#,
    ]);
    assert_eq!(made.events[0]["run_id"], "2db979eb-3b3d-4899-95f2-b63269e7602d");
    assert_eq!(
        outline(&made)[1..],
        [
            r#": system instructions "Be brief.""#,
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
            "turn-0001: assistant tool_use shell",
            r#"turn-0001: call c1 shell {"command":["false"]}"#,
            r#"turn-0001: result c1 failed "no\n""#,
        ]
    );
    assert_eq!(made.payloads("tool.result")[0]["exit_code"], 1);
}

#[test]
fn file_without_a_header_gets_the_thread_id_of_its_name() {
    let name = "rollout-2026-11-15T07-22-55-01a1de16-70f1-7b22-83bd-da0ac9b80a1a.jsonl";
    let source = Source { file_name: Some(name.to_owned()), ..Source::named("s1") };
    let line = r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#;
    let made = made_of_lines(codex::rollout(source), &["torn", line]);
    assert_eq!(made.events[0]["run_id"], "01a1de16-70f1-7b22-83bd-da0ac9b80a1a");
    assert_eq!(
        outline(&made)[1..],
        [
            ": unknown unreadable no JSON object",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
        ]
    );
}

#[test]
fn exec_item_with_two_ids_uses_the_first() {
    check_exec(
        &[
            r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.started","item":{"id":"item_1","type":"web_search","id":"ws_1","query":""}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"web_search","id":"ws_1","query":"q"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":3}}"#,
        ],
        &[
            ": run",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant tool_use web_search",
            r#"turn-0001: call item_1 web_search {"query":"q"}"#,
            "turn-0001: result item_1 ok null",
            r#"turn-0001: assistant used {"input_tokens":3} session"#,
            "turn-0001: turn turn-0001 null",
        ],
    );
}

#[test]
fn exec_output_of_september_2025_is_read() {
    check_exec(
        &[
            r#"{"type":"session.created","session_id":"01a1de00-0000-7000-8000-000000000001"}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","item_type":"assistant_message","text":"Done"}}"#,
        ],
        &[": run", ": assistant text Done"],
    );
}

#[test]
fn item_ids_of_a_second_process_are_separate() {
    let command = r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"a","aggregated_output":"x","exit_code":0,"status":"completed"}}"#;
    let thread = r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#;
    let made = exec(&[thread, command, thread, command]);
    let ids: Vec<&Value> = made.payloads("tool.call").into_iter().map(|call| &call["call_id"]).collect();
    assert_eq!(ids, ["item_0", "2:item_0"]);
    assert_eq!(made.payloads("run.started").len(), 1);
    let session = &made.events[0]["session_run_id"];
    assert_eq!(session, "01a1de00-0000-7000-8000-000000000001");
    assert_ne!(made.events[0]["run_id"], *session);
}

#[test]
fn exec_output_of_0_36_is_read() {
    check_exec(
        &[
            r#"{"workdir":"/w","model":"m1","sandbox":"read-only","reasoning effort":"high"}"#,
            r#"{"prompt":"Go"}"#,
            r#"{"id":"0","msg":{"type":"task_started"}}"#,
            r#"{"id":"0","msg":{"type":"agent_reasoning","text":"Hm."}}"#,
            r#"{"id":"0","msg":{"type":"mcp_tool_call_begin","call_id":"c1","invocation":{"server":"s","tool":"t","arguments":{"a":1}}}}"#,
            r#"{"id":"0","msg":{"type":"mcp_tool_call_end","call_id":"c1","result":{"Ok":{"content":[],"isError":true}}}}"#,
            r#"{"id":"0","msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9},"last_token_usage":{"input_tokens":9}}}}"#,
            r#"{"id":"0","msg":{"type":"exec_command_output_delta","call_id":"c2","chunk":"eA=="}}"#,
            r#"{"id":"0","msg":{"type":"task_complete","last_agent_message":"Done"}}"#,
        ],
        &[
            ": run",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: user text Go",
            "turn-0001: assistant thinking Hm.",
            "turn-0001: assistant tool_use mcp__s__t",
            r#"turn-0001: call c1 mcp__s__t {"a":1}"#,
            r#"turn-0001: result c1 failed {"content":[],"isError":true}"#,
            r#"turn-0001: assistant used {"input_tokens":9} response"#,
            r#"turn-0001: turn turn-0001 "Done""#,
        ],
    );
}

#[test]
fn retries_and_failure_of_a_turn_are_recorded() {
    check_exec(
        &[
            r#"{"type":"thread.started","thread_id":"t"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}"#,
            r#"{"type":"error","message":"gone"}"#,
            r#"{"type":"turn.failed","error":{"message":"gone"}}"#,
        ],
        &[
            ": run",
            "turn-0001: turn turn-0001 begins",
            "turn-0001: retry api stream disconnected",
            "turn-0001: error api gone",
            "turn-0001: turn turn-0001 gone",
        ],
    );
}
