//! Messages that one channel has as a whole and another one in several records.

use serde_json::{Value, json};

use super::tests::{call, check, prompt, run, turn};

#[test]
fn message_that_another_channel_splits_is_one_message() {
    let thought = json!({"type": "thinking", "thinking": "Look around."});
    let text = json!({"type": "text", "text": "I look."});
    let uses = json!({"type": "tool_use", "tool_name": "bash", "tool_id": "c1", "tool_input": {}});
    let message = |blocks: &[&Value]| {
        let payload = json!({"role": "assistant", "blocks": blocks});
        json!(["message.assistant", "turn-0001", payload])
    };
    let runs = || {
        let whole = [message(&[&thought, &text, &uses]), call("turn-0001", "c1", "command")];
        let split = [&thought, &text, &uses].map(|block| message(&[block]));
        let other = [message(&[&text])];
        let begin = || vec![turn("turn-0001", "t1"), prompt("turn-0001", None, "Go")];
        vec![
            run(1, "disk", &[begin(), whole.to_vec()].concat()),
            run(2, "acp", &[begin(), split.to_vec(), other.to_vec()].concat()),
        ]
    };
    // The second `I look.` is in one run only.
    let session =
        check(&runs, &["turn-0001 t1 in_progress", "  user: Go", "  model: I look.", "  model: I look."]);
    assert_eq!(session.calls.len(), 1);
}

#[test]
fn message_of_a_response_that_another_channel_splits_is_one_message() {
    let blocks = [
        json!({"type": "thinking", "thinking": "Look around."}),
        json!({"type": "text", "text": "I look."}),
        json!({"type": "tool_use", "tool_name": "bash", "tool_id": "c1", "tool_input": {}}),
    ];
    let message = |id: &str, response: &str, blocks: &[Value]| {
        let payload = json!({"role": "assistant", "id": id, "response": response, "blocks": blocks});
        json!(["message.assistant", "turn-0001", payload])
    };
    let runs = || {
        let whole = [message("m1", "r1", &blocks), call("turn-0001", "c1", "command")];
        let split =
            blocks.each_ref().map(|block| message(&block.to_string(), "r1", std::slice::from_ref(block)));
        let other = [message("m9", "r2", &blocks[1..2])];
        let begin = || vec![turn("turn-0001", "t1"), prompt("turn-0001", None, "Go")];
        vec![
            run(1, "disk", &[begin(), whole.to_vec()].concat()),
            run(2, "http", &[begin(), split.to_vec(), other.to_vec()].concat()),
        ]
    };
    // The same words of another response are another message.
    let session =
        check(&runs, &["turn-0001 t1 in_progress", "  user: Go", "  model: I look.", "  model: I look."]);
    assert_eq!((session.calls.len(), session.responses.len()), (1, 2));
}
