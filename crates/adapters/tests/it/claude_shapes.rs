//! Content of a kind that Claude Code does not write: it is kept as it came, or its record is told and counted as unknown.
//!
//! In each record `@` stands for a value; see `odd` for the values.

use steno_adapters::{Source, claude};

use crate::odd::{Surface, VALUES, check, check_silent};

const DISK: Surface = Surface {
    name: "disk",
    adapter: || claude::disk(Source::named("s1")),
    before: &[
        r#"{"type":"user","uuid":"u1","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"content":"Go."}}"#,
        r#"{"type":"assistant","uuid":"u2","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}},{"type":"tool_use","id":"t2","name":"Task","input":{"prompt":"Count."}}]}}"#,
    ],
    after: &[],
    records: &[
        r#"{"type":@,"uuid":"u9"}"#,
        r#"{"type":"user","uuid":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","parentUuid":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","timestamp":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","sessionId":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","agentId":@,"isSidechain":true,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","isSidechain":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","isMeta":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","isCompactSummary":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","origin":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","origin":{"kind":@},"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","permissionMode":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","promptId":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","forkedFrom":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","forkedFrom":{"sessionId":@},"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","forkedFrom":{"sessionId":"s","messageUuid":@},"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","message":@}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[@]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"text","text":"x"},@,"y",7]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":@,"text":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"text","text":@}]}}"#,
        r#"{"type":"user","uuid":"u9","isMeta":true,"message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","isMeta":true,"message":{"content":[{"type":"text","text":"x"},@]}}"#,
        r#"{"type":"user","uuid":"u9","isCompactSummary":true,"message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","isCompactSummary":true,"message":{"content":[{"type":"text","text":@}]}}"#,
        r#"{"type":"user","uuid":"u9","origin":{"kind":"task-notification"},"message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":@,"content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":@}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"},@]}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":@}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":@,"content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t9","content":@}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"},@]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":@,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"interrupted":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"task":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"agentId":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"agentId":"a1","status":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"agentId":"a1","agentType":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolUseResult":{"agentId":"a1","isAsync":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","permissionDecision":@,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","permissionDecision":{"decision":@,"source":"user_temporary"},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","permissionDecision":{"decision":"accept","source":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","toolDenialKind":@,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"assistant","uuid":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":@}"#,
        r#"{"type":"assistant","uuid":"u9","requestId":@,"message":{"content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":@,"content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","model":@,"content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":@}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[@]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"text","text":"x"},@]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":@,"text":"x"}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"text","text":@}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"thinking","thinking":@}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"tool_use","id":@,"name":"f","input":{}}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"tool_use","id":"t3","name":@,"input":{}}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"tool_use","id":"t3","name":"f","input":@}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"web_search_tool_result","tool_use_id":"t3","content":@}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"web_search_tool_result","tool_use_id":@,"content":"x"}]}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[],"usage":@}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[],"stop_reason":@}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[{"type":"text","text":"x"}],"usage":@}}"#,
        r#"{"type":"assistant","uuid":"u9","isApiErrorMessage":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","isApiErrorMessage":true,"message":{"id":"m2","content":@}}"#,
        r#"{"type":"assistant","uuid":"u9","isApiErrorMessage":true,"error":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","error":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","model":"<synthetic>","content":@}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","model":"<synthetic>","content":[{"type":"text","text":"x"},@]}}"#,
        r#"{"type":"system","uuid":"u9","subtype":@}"#,
        r#"{"type":"system","uuid":"u9","subtype":"informational","content":@}"#,
        r#"{"type":"system","uuid":"u9","subtype":"compact_boundary","compactMetadata":@}"#,
        r#"{"type":"system","uuid":"u9","subtype":"api_error","error":@}"#,
        r#"{"type":"system","uuid":"u9","subtype":"api_error","error":{"formatted":@}}"#,
        r#"{"type":"system","uuid":"u9","subtype":"api_error","error":{"message":@}}"#,
        r#"{"type":"system","uuid":"u9","subtype":"api_error","error":{},"retryAttempt":@}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":@}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":@}}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":"hologram","content":@}}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":"prompt_snapshot","systemPrompt":@}}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":"prompt_snapshot","systemPrompt":["x",@]}}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":"queued_command","prompt":@}}"#,
        r#"{"type":"attachment","uuid":"u9","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"x"},@]}}"#,
        r#"{"type":"summary","summary":@}"#,
        r#"{"type":"ai-title","aiTitle":@}"#,
        r#"{"type":"custom-title","customTitle":@}"#,
        r#"{"type":"cost-state","modelUsage":@}"#,
        r#"{"type":"queue-operation","operation":@}"#,
        r#"{"type":"queue-operation","operation":"remove","content":@}"#,
        r#"{"type":"permission-mode","permissionMode":@}"#,
        r#"{"type":"hologram","data":@}"#,
    ],
};

const STREAM: Surface = Surface {
    name: "stream",
    adapter: || claude::stream(Source::named("s1")),
    before: &[
        r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#,
        r#"{"type":"assistant","uuid":"u2","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}},{"type":"tool_use","id":"t2","name":"Task","input":{"prompt":"Count."}}]}}"#,
    ],
    after: &[],
    records: &[
        r#"{"type":@}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":@}"#,
        r#"{"type":"assistant","uuid":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","session_id":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","parent_tool_use_id":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","parent_tool_use_id":"t2","agent_id":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","timestamp":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"assistant","uuid":"u9","message":@}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":@}}"#,
        r#"{"type":"assistant","uuid":"u9","message":{"id":"m2","content":[@]}}"#,
        r#"{"type":"assistant","uuid":"u9","error":@,"message":{"id":"m2","content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","message":@}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","isReplay":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","isSynthetic":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","isSynthetic":true,"message":{"content":@}}"#,
        r#"{"type":"user","uuid":"u9","isReplay":true,"message":{"content":[{"type":"text","text":"x"},@]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":@,"content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":@}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_use_result":@,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_use_result":@,"message":{"content":"x"}}"#,
        r#"{"type":"user","uuid":"u9","tool_use_result":{"agentId":@},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_result_meta":@,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_result_meta":[@],"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_result_meta":[{"id":@}],"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_result_meta":[{"id":"t1","permission_decision":@}],"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"user","uuid":"u9","tool_result_meta":[{"id":"t1","non_execution_kind":@}],"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#,
        r#"{"type":"result","subtype":@,"is_error":true}"#,
        r#"{"type":"result","subtype":"success","is_error":@}"#,
        r#"{"type":"result","subtype":"success","usage":@}"#,
        r#"{"type":"result","subtype":"success","modelUsage":@}"#,
        r#"{"type":"result","subtype":"success","result":@}"#,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":@}"#,
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["x",@]}"#,
        r#"{"type":"result","subtype":"success","errors":@}"#,
        r#"{"type":"result","subtype":"success","permission_denials":@}"#,
        r#"{"type":"result","subtype":"success","total_cost_usd":@}"#,
        r#"{"type":"result","subtype":"success","local_command":@}"#,
        r#"{"type":"result","subtype":"success","structured_output":@}"#,
        r#"{"type":"system","subtype":@}"#,
        r#"{"type":"system","subtype":"status","status":@}"#,
        r#"{"type":"system","subtype":"init","model":@}"#,
        r#"{"type":"system","subtype":"init","model":"m","tools":@}"#,
        r#"{"type":"system","subtype":"api_retry","error":@}"#,
        r#"{"type":"system","subtype":"api_retry","error":"x","error_status":@}"#,
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":@}"#,
        r#"{"type":"system","subtype":"task_started","task_id":@,"tool_use_id":"t2","task_type":"local_agent"}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":@,"task_type":"local_agent"}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"t2","task_type":@}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"t2","subagent_type":@}"#,
        r#"{"type":"system","subtype":"task_updated","task_id":"a1","patch":@}"#,
        r#"{"type":"system","subtype":"task_updated","task_id":"a1","patch":{"status":@}}"#,
        r#"{"type":"system","subtype":"task_notification","task_id":@,"status":"completed"}"#,
        r#"{"type":"system","subtype":"task_notification","task_id":"a1","tool_use_id":"t2","status":@}"#,
    ],
};

/// Tells where a value is of a kind that Claude Code writes, and stands for something that is not kept as it is: ids
/// that runs are made from, and what a result says a second time in another form.
fn is_usual(record: &str, value: &str) -> bool {
    let is_text = value == VALUES[1];
    let is_twin = ["\"toolUseResult\":@", "\"tool_use_result\":@"].iter().any(|field| record.contains(field));
    let is_beside_a_result = is_twin && record.contains("\"tool_result\"");
    let is_of_a_run = [
        "\"session_id\":@",
        "\"parent_tool_use_id\":@",
        "\"parentUuid\":@",
        "\"agentId\":@,\"isSidechain\":true",
    ];
    let is_task = record.contains("\"task\":@") && value.starts_with('{');
    is_task
        || (is_text && is_of_a_run.iter().any(|field| record.contains(field)))
        || (is_beside_a_result && value != VALUES[0])
}

#[test]
fn odd_content_is_kept_or_its_record_is_unknown() {
    let tried = check(&[&DISK, &STREAM], is_usual);
    assert!(tried > 1_100, "{tried}");
}

#[test]
fn no_record_vanishes() {
    let tried = check_silent(&[&DISK, &STREAM]);
    assert!(tried > 800, "{tried}");
}
