//! Invented records in the formats of the agents.

use std::fmt::Write as _;

/// The session id of most tests.
pub const SESSION: &str = "0f000000-0000-4000-8000-000000000001";

/// The thread id of the tests of Codex.
pub const THREAD: &str = "01a1de00-0000-7000-8000-000000000130";

/// A prompt to Claude.
pub fn prompt(number: u32) -> String {
    line(number, "user", &format!(r#"{{"role":"user","content":"Prompt {number}: änd so on."}}"#))
}

/// A prompt to a subagent of Claude, in its session's own file, as its first record or after another.
pub fn sidechain(number: u32, parent: Option<u32>) -> String {
    let is_after = number.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
    let parent = parent.map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
    prompt(number)
        .replace(&format!(r#""parentUuid":{is_after}"#), &format!(r#""parentUuid":{parent}"#))
        .replace(r#""isSidechain":false"#, r#""isSidechain":true"#)
}

/// A response of Claude with text and so many calls, all in one record.
pub fn response(number: u32, calls: u32) -> String {
    let mut blocks = format!(r#"{{"type":"text","text":"Response {number}."}}"#);
    for call in 0..calls {
        let _ = write!(
            blocks,
            r#",{{"type":"tool_use","id":"toolu_{number}_{call}","name":"Bash","input":{{"command":"echo {call}"}}}}"#
        );
    }
    let usage = r#""usage":{"input_tokens":10,"output_tokens":7}"#;
    line(
        number,
        "assistant",
        &format!(
            r#"{{"id":"msg_{number}","type":"message","role":"assistant","model":"claude-x","content":[{blocks}],"stop_reason":"tool_use",{usage}}}"#
        ),
    )
}

/// The results of a response's calls, all in one record.
pub fn results(number: u32, of: u32, calls: u32) -> String {
    let result = |call: u32| {
        format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{of}_{call}","content":"{call}"}}"#)
    };
    let blocks: Vec<String> = (0..calls).map(result).collect();
    line(number, "user", &format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(",")))
}

/// A session: a prompt, a response with calls, their results, another response.
pub fn turn(first: u32, calls: u32) -> String {
    [prompt(first), response(first + 1, calls), results(first + 2, first + 1, calls), response(first + 3, 0)]
        .concat()
}

fn line(number: u32, kind: &str, message: &str) -> String {
    let parent = number.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
    let time = format!("2026-01-02T03:{:02}:{:02}.000Z", number / 60 % 60, number % 60);
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/work","sessionId":"{SESSION}","version":"2.1.200","type":"{kind}","message":{message},"uuid":"u{number}","timestamp":"{time}"}}"#
    ) + "\n"
}

/// The beginning of a Codex rollout.
pub fn rollout() -> String {
    let meta = format!(
        r#"{{"id":"{THREAD}","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w","originator":"codex_cli","cli_version":"0.130.0","source":"cli"}}"#
    );
    codex(5, "session_meta", &meta)
        + &codex(
            5,
            "event_msg",
            r#"{"type":"task_started","turn_id":"01a1de01-0000-7000-8000-000000000001"}"#,
        )
        + &codex(5, "event_msg", r#"{"type":"user_message","message":"List the files.","images":[]}"#)
}

/// A call of Codex with its output.
pub fn codex_call(number: u32) -> String {
    let call = format!(
        r#"{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\":\"ls {number}\"}}","call_id":"call_{number}"}}"#
    );
    let output = format!(
        r#"{{"type":"function_call_output","call_id":"call_{number}","output":"Process exited with code 0\nOutput:\n{number}\n"}}"#
    );
    codex(6 + number, "response_item", &call) + &codex(6 + number, "response_item", &output)
}

fn codex(second: u32, kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-02T03:04:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#)
        + "\n"
}
