//! The same work gives the same entry types with every adapter (R32), in real captures and in hand-written lines.
//!
//! The comparison leaves out `system_event`, which describes the program, and `unknown`, its bookkeeping. Of
//! `token_usage` only the number per turn is compared: Claude writes it with the first record of a response, Codex
//! after the last.

use std::path::Path;

use steno_adapters::{Adapter, Source, claude, codex};
use steno_model::{EntryType, Lane, Vocabulary as _};
use steno_testkit::{needs, places, shared_dir};

use crate::conversations::{conversations, outline};
use crate::reading::{Entry, Piece, claude_file, is_named, output, read, source_of};

/// An operation of an agent as each surface records it; a surface that does not record it has no lines.
struct Operation {
    name: &'static str,
    /// Blocks of Claude's messages, by the model and by the user.
    claude: &'static [Said],
    rollout: &'static [&'static str],
    exec: &'static [&'static str],
    app_server: &'static [&'static str],
    want: &'static [EntryType],
}

/// A message of Claude with these blocks.
enum Said {
    Prompt(&'static str),
    Assistant(&'static str),
    Results(&'static str),
}

use EntryType::{AssistantMessage, Thinking, ToolResult, ToolUse, UserMessage};
use Said::{Assistant, Prompt, Results};

const OPERATIONS: [Operation; 11] = [
    Operation {
        name: "a prompt",
        claude: &[Prompt("Go")],
        rollout: &[r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#],
        // Its prompt is an argument of the command line.
        exec: &[],
        app_server: &[
            r#">{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go"}]}}"#,
            r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","id":"i0","content":[{"type":"text","text":"Go"}]}}}"#,
        ],
        want: &[UserMessage],
    },
    Operation {
        name: "a thought",
        claude: &[Assistant(r#"{"type":"thinking","thinking":"Hm.","signature":"s"}"#)],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"reasoning","id":"rs1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"x"}}"#,
        ],
        exec: &[r#"{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"Hm."}}"#],
        app_server: &[
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"reasoning","id":"rs1","summary":["Hm."],"content":[]}}}"#,
        ],
        want: &[Thinking],
    },
    Operation {
        name: "a text",
        claude: &[Assistant(r#"{"type":"text","text":"Done."}"#)],
        rollout: &[
            r#"{"type":"event_msg","payload":{"type":"agent_message","message":"Done."}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#,
        ],
        exec: &[r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}"#],
        app_server: &[
            r#"{"method":"item/agentMessage/delta","params":{"threadId":"t1","itemId":"m1","delta":"Done."}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"agentMessage","id":"m1","text":"Done."}}}"#,
        ],
        want: &[AssistantMessage],
    },
    Operation {
        name: "a command",
        claude: &[
            Assistant(r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"a"}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"c1","aggregated_output":"a","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"ls","status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"ls","status":"completed","aggregatedOutput":"a","exitCode":0}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "a command that fails",
        claude: &[
            Assistant(r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"exit 3"}}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"Exit code 3","is_error":true}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"exit 3\"}","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"c1","aggregated_output":"","exit_code":3,"status":"failed"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Process exited with code 3"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"exit 3","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"exit 3","aggregated_output":"","exit_code":3,"status":"failed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"exit 3","status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"exit 3","status":"failed","aggregatedOutput":"","exitCode":3}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "a file that is read",
        claude: &[
            Assistant(r#"{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"/n"}}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"1\tone"}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"cat n\"}","call_id":"c1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"one"}}"#,
        ],
        exec: &[
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"cat n","aggregated_output":"one","exit_code":0,"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"cat n","status":"completed","aggregatedOutput":"one","exitCode":0}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "a file that is written, or changed",
        claude: &[
            Assistant(
                r#"{"type":"tool_use","id":"c1","name":"Write","input":{"file_path":"/n","content":"x"}}"#,
            ),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"File created"}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** x","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"patch_apply_end","call_id":"c1","stdout":"ok","stderr":"","success":true,"changes":{}}}"#,
            r#"{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"file_change","changes":[{"path":"/n","kind":"add"}],"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"path":"/n","kind":"add"}],"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"fileChange","id":"c1","changes":[{"path":"/n","kind":{"type":"add"},"diff":"x"}],"status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"fileChange","id":"c1","changes":[{"path":"/n","kind":{"type":"add"},"diff":"x"}],"status":"completed"}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "an MCP call",
        claude: &[
            Assistant(r#"{"type":"tool_use","id":"c1","name":"mcp__tiny__add","input":{"a":1}}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"2"}]}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"add","namespace":"mcp__tiny","arguments":"{\"a\":1}","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"tiny","tool":"add","arguments":{"a":1}},"result":{"Ok":{"content":[]}}}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"2"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"mcp_tool_call","server":"tiny","tool":"add","arguments":{"a":1},"result":null,"error":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"tiny","tool":"add","arguments":{"a":1},"result":{"content":[]},"error":null,"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"mcpToolCall","id":"c1","server":"tiny","tool":"add","arguments":{"a":1},"status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"mcpToolCall","id":"c1","server":"tiny","tool":"add","arguments":{"a":1},"status":"completed","result":{"content":[]}}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "an MCP call that fails",
        claude: &[
            Assistant(r#"{"type":"tool_use","id":"c1","name":"mcp__tiny__fail","input":{}}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"no","is_error":true}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"fail","namespace":"mcp__tiny","arguments":"{}","call_id":"c1"}}"#,
            r#"{"type":"event_msg","payload":{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"tiny","tool":"fail","arguments":{}},"result":{"Err":"no"}}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"no"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"mcp_tool_call","server":"tiny","tool":"fail","arguments":{},"result":null,"error":null,"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"tiny","tool":"fail","arguments":{},"result":null,"error":{"message":"no"},"status":"failed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"mcpToolCall","id":"c1","server":"tiny","tool":"fail","arguments":{},"status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"mcpToolCall","id":"c1","server":"tiny","tool":"fail","arguments":{},"status":"failed","error":{"message":"no"}}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
    Operation {
        name: "two calls at once",
        claude: &[
            Assistant(
                r#"{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"a"}},{"type":"tool_use","id":"c2","name":"Bash","input":{"command":"b"}}"#,
            ),
            Results(r#"{"type":"tool_result","tool_use_id":"c2","content":"b"}"#),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":"a"}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c2"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"b"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"a","status":"in_progress"}}"#,
            r#"{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"b","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"b","aggregated_output":"b","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"a","aggregated_output":"a","exit_code":0,"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"a","status":"inProgress"}}}"#,
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c2","command":"b","status":"inProgress"}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"a","status":"completed","exitCode":0}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c2","command":"b","status":"completed","exitCode":0}}}"#,
        ],
        want: &[ToolUse, ToolUse, ToolResult, ToolResult],
    },
    Operation {
        name: "a subagent",
        claude: &[
            Assistant(
                r#"{"type":"tool_use","id":"c1","name":"Agent","input":{"prompt":"Count.","subagent_type":"x"}}"#,
            ),
            Results(r#"{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"3"}]}"#),
        ],
        rollout: &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","namespace":"multi_agent_v1","arguments":"{\"message\":\"Count.\"}","call_id":"c1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"agent_id\":\"01a1de00-0000-7000-8000-000000000002\"}"}}"#,
        ],
        exec: &[
            r#"{"type":"item.started","item":{"id":"item_1","type":"collab_tool_call","tool":"spawn_agent","receiver_thread_ids":[],"prompt":"Count.","agents_states":{},"status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"collab_tool_call","tool":"spawn_agent","receiver_thread_ids":["01a1de00-0000-7000-8000-000000000002"],"prompt":"Count.","agents_states":{},"status":"completed"}}"#,
        ],
        app_server: &[
            r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"collabAgentToolCall","id":"c1","tool":"spawnAgent","status":"inProgress","senderThreadId":"t1","receiverThreadIds":[],"prompt":"Count.","agentsStates":{}}}}"#,
            r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"collabAgentToolCall","id":"c1","tool":"spawnAgent","status":"completed","senderThreadId":"t1","receiverThreadIds":["01a1de00-0000-7000-8000-000000000002"],"prompt":"Count.","agentsStates":{}}}}"#,
        ],
        want: &[ToolUse, ToolResult],
    },
];

#[test]
fn each_operation_gives_the_same_entry_types_on_every_surface() {
    let mut checked = 0;
    for operation in &OPERATIONS {
        for (_, adapter, lines) in surfaces_of(operation) {
            checked += check(operation.name, adapter, &lines, operation.want);
        }
    }
    // All surfaces have all operations, except that the two plain streams have no prompt.
    assert_eq!(checked, OPERATIONS.len() * 5 - 2);
}

/// Returns the name of each surface, its adapter, and a first line with the lines of the operation.
fn surfaces_of(operation: &Operation) -> [(&'static str, Adapter, Vec<String>); 5] {
    let Operation { name: _, claude: said, rollout, exec, app_server, want: _ } = operation;
    let meta = [
        r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#,
    ];
    let started = [r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#];
    let opened = [r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#];
    [
        ("claude disk", claude::disk(source()), claude_lines(said, Channel::Disk)),
        ("claude stream", claude::stream(source()), claude_lines(said, Channel::Stream)),
        ("codex rollout", codex::rollout(source()), lines(&meta, rollout)),
        ("codex exec", codex::exec(source()), lines(&started, exec)),
        (
            "codex app-server",
            codex::app_server(source()).of_conversation(),
            both_ways(&lines(&opened, app_server)),
        ),
    ]
}

/// Each operation in a conversation.
const CONVERSATIONS: [&str; 11] = [
    "prompt: text",
    "message: thinking",
    "message: text",
    "message: command ok",
    "message: command failed",
    "message: command ok",
    "message: file_change ok",
    "message: mcp ok",
    "message: mcp failed",
    "message: command ok, command ok",
    "message: agent ok <open>",
];

/// Differences: operation, surface, line of the conversation, reason.
const DIFFERENCES: [(&str, &str, &str, &str); 7] = [
    ("a file that is read", "claude disk", "message: other ok", "Claude has a tool to read a file"),
    ("a file that is read", "claude stream", "message: other ok", "Claude has a tool to read a file"),
    (
        "a file that is read",
        "codex rollout",
        "message: command unknown",
        "without a report only prose tells how it ended",
    ),
    (
        "two calls at once",
        "codex rollout",
        "message: command unknown, command unknown",
        "without reports only prose tells how they ended",
    ),
    (
        "a subagent",
        "codex rollout",
        "message: agent unknown <open>",
        "without a report only prose tells how it ended",
    ),
    (
        "a subagent",
        "claude disk",
        "message: agent ok",
        "only the report of the call names the agent, and there is none",
    ),
    (
        "a subagent",
        "claude stream",
        "message: agent ok",
        "only records of the agent name it, and there are none",
    ),
];

#[test]
fn each_operation_gives_the_same_conversation_except_listed_rows() {
    let mut differences = 0;
    for (operation, usual) in OPERATIONS.iter().zip(CONVERSATIONS) {
        for (surface, adapter, lines) in surfaces_of(operation) {
            if lines.len() < 2 {
                continue;
            }
            let listed = DIFFERENCES.iter().find(|row| (row.0, row.1) == (operation.name, surface));
            differences += usize::from(listed.is_some());
            let reading = read(adapter, &[output((lines.join("\n") + "\n").as_bytes())]);
            let shown: Vec<String> = conversations(&reading).values().flat_map(outline).collect();
            let shown: Vec<&String> = shown
                .iter()
                .filter(|line| ["prompt:", "message:", "call:"].iter().any(|kind| line.starts_with(kind)))
                .collect();
            assert_eq!(shown, [listed.map_or(usual, |row| row.2)], "{} on {surface}", operation.name);
        }
    }
    assert_eq!(differences, DIFFERENCES.len());
}

/// Reads lines and compares the types of their entries; does nothing if there is only the first line.
#[track_caller]
fn check(name: &str, adapter: Adapter, lines: &[String], want: &[EntryType]) -> usize {
    if lines.len() < 2 {
        return 0;
    }
    let text = lines.join("\n") + "\n";
    let reading = read(adapter, &[output(text.as_bytes())]);
    assert_eq!(types(&reading.entries), words(want), "{name}: {}", lines[1]);
    assert_eq!(reading.completeness.unknown.len(), 0, "{name}: {}", lines[1]);
    1
}

fn source() -> Source {
    Source::named("s1")
}

fn lines(first: &[&str], rest: &[&str]) -> Vec<String> {
    first.iter().chain(rest).map(|&line| line.to_owned()).collect()
}

/// Puts messages into the envelopes of a recording; `>` marks messages that are sent to the agent.
fn both_ways(lines: &[String]) -> Vec<String> {
    let envelope = |line: &String| match line.strip_prefix('>') {
        Some(sent) => format!(r#"{{"dir":"c2s","msg":{sent}}}"#),
        None => format!(r#"{{"dir":"s2c","msg":{line}}}"#),
    };
    lines.iter().map(envelope).collect()
}

#[derive(Clone, Copy)]
enum Channel {
    Disk,
    Stream,
}

fn claude_lines(said: &[Said], channel: Channel) -> Vec<String> {
    const SESSION: &str = "0f000000-0000-4000-8000-000000000001";
    let (first, session) = match channel {
        Channel::Disk => {
            (format!(r#"{{"type":"mode","mode":"normal","sessionId":"{SESSION}"}}"#), "sessionId")
        }
        Channel::Stream => (
            format!(r#"{{"type":"system","subtype":"init","session_id":"{SESSION}","tools":[]}}"#),
            "session_id",
        ),
    };
    let mut lines = vec![first];
    for (number, said) in said.iter().enumerate() {
        let head = format!(r#""uuid":"u{number}","{session}":"{SESSION}""#);
        match (said, channel) {
            (Prompt(_), Channel::Stream) => {}
            (Prompt(text), Channel::Disk) => {
                lines.push(format!(r#"{{"type":"user",{head},"message":{{"role":"user","content":"{text}"}}}}"#));
            }
            (Assistant(blocks), _) => lines.push(format!(
                r#"{{"type":"assistant",{head},"message":{{"id":"m1","role":"assistant","model":"x","content":[{blocks}]}}}}"#
            )),
            (Results(blocks), _) => lines.push(format!(
                r#"{{"type":"user",{head},"message":{{"role":"user","content":[{blocks}]}}}}"#
            )),
        }
    }
    lines
}

fn words(types: &[EntryType]) -> Vec<&'static str> {
    types.iter().map(|kind| kind.as_str()).collect()
}

fn types(entries: &[Entry]) -> Vec<&'static str> {
    let kept = |kind: &EntryType| {
        !matches!(kind, EntryType::SystemEvent | EntryType::TokenUsage | EntryType::Unknown)
    };
    entries.iter().map(|entry| entry.kind).filter(kept).map(EntryType::as_str).collect()
}

/// A round of the two captures: a response and the results of its calls.
struct Round {
    claude: &'static str,
    codex: &'static str,
    /// The reason for a difference, or nothing.
    why: &'static str,
}

const fn same(types: &'static str) -> Round {
    Round { claude: types, codex: types, why: "" }
}

const THOUGHT_TEXT_CALL: &str = "thinking assistant_message tool_use tool_result";
const TWO_CALLS: &str = "tool_use tool_use tool_result tool_result";
const CALL: &str = "tool_use tool_result";

/// The main runs, round by round; an agent without such a round has an empty text.
const ROUNDS: [Round; 17] = [
    // The system prompt, and the prompt.
    same("user_message user_message"),
    same(THOUGHT_TEXT_CALL),
    same("thinking tool_use tool_result"),
    same("assistant_message tool_use tool_use tool_result tool_result"),
    same(CALL),
    same(CALL),
    same(TWO_CALLS),
    Round {
        claude: "assistant_message tool_use tool_result",
        codex: "",
        why: "Claude's script delegates here",
    },
    Round { claude: "", codex: CALL, why: "only Codex has commands that go on after their call" },
    Round { claude: "", codex: CALL, why: "only Codex has calls that write to such a command" },
    Round { claude: CALL, codex: TWO_CALLS, why: "Codex's script searches for tools twice" },
    same(TWO_CALLS),
    same(TWO_CALLS),
    Round { claude: "error error", codex: "", why: "rollouts carry no retries" },
    Round {
        claude: "",
        codex: "assistant_message tool_use tool_result",
        why: "Codex's script delegates here",
    },
    Round {
        claude: "",
        codex: "tool_use tool_result tool_use tool_result",
        why: "Codex waits for an agent and closes it by calls",
    },
    same("thinking assistant_message"),
];

#[test]
fn same_script_gives_the_same_entry_types_except_listed_rounds() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let claude = entries_of(&shared.join("captures/claude/2.1.325/main"), "home/projects");
    let codex = entries_of(&shared.join("captures/codex/0.166.0/exec_main"), "rollout-");
    let side =
        |of: fn(&Round) -> &'static str| ROUNDS.iter().flat_map(move |round| of(round).split_whitespace());
    assert_eq!(types(&claude), side(|round| round.claude).collect::<Vec<_>>(), "Claude");
    assert_eq!(types(&codex), side(|round| round.codex).collect::<Vec<_>>(), "Codex");
    for round in &ROUNDS {
        assert_eq!(round.claude == round.codex, round.why.is_empty(), "{}", round.why);
    }
}

#[test]
fn usage_has_one_entry_per_response() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let count =
        |entries: &[Entry]| entries.iter().filter(|entry| entry.kind == EntryType::TokenUsage).count();
    // Claude: 11 responses and the total of the session. Codex: 15 responses.
    assert_eq!(count(&entries_of(&shared.join("captures/claude/2.1.325/main"), "home/projects")), 12);
    assert_eq!(count(&entries_of(&shared.join("captures/codex/0.166.0/exec_main"), "rollout-")), 15);
}

/// Returns the entries of the main run of a capture.
fn entries_of(directory: &Path, part: &str) -> Vec<Entry> {
    let names = places::files_below(directory).into_iter();
    let all = names.filter(|name| name.contains(part) && is_named(name, "jsonl")).map(|name| {
        let path = directory.join(name);
        let (adapter, pieces): (Adapter, Vec<Piece>) = if part == "rollout-" {
            (codex::rollout(source_of(&path)), vec![output(&places::read_bytes(&path))])
        } else {
            claude_file(&path)
        };
        read(adapter, &pieces).entries
    });
    let main: Vec<Vec<Entry>> =
        all.filter(|entries| entries.iter().all(|entry| entry.source == "main")).collect();
    let [one] = &main[..] else { panic!("{} main runs of {part}", main.len()) };
    one.clone()
}

/// A turn as each surface records it: a prompt, a response with a thought, a text and a call, and a response with a
/// text. `>` marks lines that are sent to the agent.
const TURN_DISK: &[&str] = &[
    r#"{"type":"user","uuid":"a1","sessionId":"0f000000-0000-4000-8000-000000000001","timestamp":"2026-06-08T08:14:42.000Z","message":{"role":"user","content":"Go"}}"#,
    r#"{"type":"assistant","uuid":"a2","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"}],"usage":{"output_tokens":1}}}"#,
    r#"{"type":"assistant","uuid":"a3","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Looking."}],"usage":{"output_tokens":1}}}"#,
    r#"{"type":"assistant","uuid":"a4","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}],"usage":{"output_tokens":9}}}"#,
    r#"{"type":"user","uuid":"a5","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"}]}}"#,
    r#"{"type":"file-history-snapshot","messageId":"a5"}"#,
    r#"{"type":"assistant","uuid":"a6","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"id":"m2","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"Done."}],"usage":{"output_tokens":2}}}"#,
    r#"{"type":"system","subtype":"turn_duration","uuid":"a7","sessionId":"0f000000-0000-4000-8000-000000000001","durationMs":1}"#,
];

const TURN_STREAM: &[&str] = &[
    r#">{"type":"user","message":{"role":"user","content":"Go"}}"#,
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001"}"#,
    r#"{"type":"stream_event","session_id":"0f000000-0000-4000-8000-000000000001","event":{"type":"message_start"}}"#,
    r#"{"type":"stream_event","session_id":"0f000000-0000-4000-8000-000000000001","event":{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hm."}}}"#,
    r#"{"type":"assistant","session_id":"0f000000-0000-4000-8000-000000000001","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}],"usage":{"output_tokens":1}}}"#,
    r#"{"type":"user","session_id":"0f000000-0000-4000-8000-000000000001","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"}]}}"#,
    r#"{"type":"assistant","session_id":"0f000000-0000-4000-8000-000000000001","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}],"usage":{"output_tokens":2}}}"#,
];

const TURN_ROLLOUT: &[&str] = &[
    r#"{"timestamp":"2026-11-15T07:00:00.000Z","type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#,
    r#"{"type":"turn_context","payload":{"model":"m"}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Go"}]}}"#,
    r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#,
    r#"{"type":"response_item","payload":{"type":"reasoning","id":"rs1","summary":[{"type":"summary_text","text":"Hm."}]}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_reasoning","text":"Hm."}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_message","message":"Looking."}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}}"#,
    r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"output_tokens":9,"total_tokens":9},"last_token_usage":{"output_tokens":9,"total_tokens":9}}}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a"}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#,
    r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"output_tokens":11,"total_tokens":11},"last_token_usage":{"output_tokens":2,"total_tokens":2}}}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"Done."}}"#,
];

const TURN_APP_SERVER: &[&str] = &[
    r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#,
    r#">{"id":2,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Go"}]}}"#,
    r#"{"id":2,"result":{"turn":{"id":"u1","status":"inProgress"}}}"#,
    r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}"#,
    r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","id":"i0","content":[{"type":"text","text":"Go"}]}}}"#,
    r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"reasoning","id":"rs1","summary":["Hm."],"content":[]}}}"#,
    r#"{"method":"item/agentMessage/delta","params":{"threadId":"t1","itemId":"m1","delta":"Looking."}}"#,
    r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"agentMessage","id":"m1","text":"Looking."}}}"#,
    r#"{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"ls","status":"inProgress"}}}"#,
    r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"t1","tokenUsage":{"total":{"outputTokens":9},"last":{"outputTokens":9}}}}"#,
    r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"ls","status":"completed","aggregatedOutput":"a","exitCode":0}}}"#,
    r#"{"method":"item/completed","params":{"threadId":"t1","item":{"type":"agentMessage","id":"m2","text":"Done."}}}"#,
    r#"{"method":"thread/tokenUsage/updated","params":{"threadId":"t1","tokenUsage":{"total":{"outputTokens":11},"last":{"outputTokens":2}}}}"#,
    r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}"#,
];

#[test]
fn turn_gives_the_same_entries_on_every_surface() {
    let surfaces = [
        ("claude disk", claude::disk(source()), TURN_DISK),
        ("claude stream", claude::stream(source()), TURN_STREAM),
        ("codex rollout", codex::rollout(source()), TURN_ROLLOUT),
        ("codex app-server", codex::app_server(source()), TURN_APP_SERVER),
    ];
    for (name, adapter, lines) in surfaces {
        let piece = |line: &&str| {
            let sent = line.strip_prefix('>');
            let lane = if sent.is_some() { Lane::ToAgent } else { Lane::FromAgent };
            Piece { lane, captured: None, bytes: format!("{}\n", sent.unwrap_or(line)).into_bytes() }
        };
        let entries = read(adapter, &lines.iter().map(piece).collect::<Vec<_>>()).entries;
        let want = [UserMessage, Thinking, AssistantMessage, ToolUse, ToolResult, AssistantMessage];
        assert_eq!(types(&entries), words(&want), "{name}");
        let usage = entries.iter().filter(|entry| entry.kind == EntryType::TokenUsage).count();
        assert_eq!(usage, 2, "{name}");
        assert!(entries.len() >= lines.iter().filter(|line| !line.contains("delta")).count(), "{name}");
    }
}
