//! Restarts of sources of Codex: positions rise for the samples of `../shared`, and for any order of records.

use std::path::PathBuf;

use proptest::prelude::*;
use steno_adapters::{Adapter, codex};
use steno_testkit::{needs, places, shared_dir};

use crate::codex_files::{adapter_for, all_samples, pieces_of};
use crate::copilot_files;
use crate::every_provider::{Sample, check_restart};
use crate::reading::{Piece, output, source_of};

/// Returns the samples of the shared directory.
fn shared(directory: &std::path::Path) -> Vec<Sample> {
    let sample = |path: PathBuf| {
        let pieces = pieces_of(&path).into_iter();
        let pieces = pieces.map(|(lane, bytes)| Piece { lane, captured: None, bytes }).collect();
        Sample { name: path.display().to_string(), open: Box::new(move || adapter_for(&path)), pieces }
    };
    let copilots = |path: PathBuf| {
        let pieces = vec![output(&places::read_bytes(&path))];
        let name = path.display().to_string();
        Sample { name, open: Box::new(move || copilot_files::adapter_for(&path)), pieces }
    };
    let samples = all_samples(directory).into_iter().map(sample);
    samples.chain(copilot_files::all_samples(directory).into_iter().map(copilots)).collect()
}

#[test]
fn restart_in_a_sample_continues_without_gaps() {
    let directory = needs!(shared_dir(), "there are no samples");
    let samples = shared(&directory);
    assert!(samples.len() > 60, "only {} samples", samples.len());
    samples.iter().for_each(check_restart);
}

/// Records of a rollout: some wait for others, some end the waiting, some do neither.
const ROLLOUT: [&str; 18] = [
    r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#,
    r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000002"}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":1}}"#,
    r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}"#,
    r#"{"type":"turn_context","payload":{"model":"m"}}"#,
    r#"{"type":"event_msg","payload":{"type":"user_message","message":"Go"}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_message","message":"One"}}"#,
    r#"{"type":"event_msg","payload":{"type":"agent_message","message":1}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"Reasoning","id":"r","summary_text":["a","b"]}}}"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One"}]}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call","name":"spawn_agent","arguments":"{}","call_id":"c1"}}"#,
    r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"agent_id\":\"a1\"}"}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CollabAgentToolCall","id":"c1","tool":"spawnAgent","status":"completed","receiver_thread_ids":["a1"],"agents_states":{"a1":{"status":"completed"}}}}}"#,
    r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"c1","server":1,"status":"completed"}}}"#,
    r#"{"type":"event_msg","payload":{"type":"warning","message":"x"}}"#,
    r#"{"type":"world_state","payload":{}}"#,
    "torn",
];

/// Messages of a connection, of the same three kinds.
const CONNECTION: [&str; 12] = [
    r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
    r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"A"}]}}}"#,
    r#"{"dir":"c2s","msg":{"id":2,"method":"turn/start","params":{"threadId":"t2","input":[{"type":"text","text":"B"}]}}}"#,
    r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"C"},1]}}}"#,
    r#"{"dir":"c2s","msg":{"id":3,"method":"turn/steer","params":{"threadId":"t1","input":[{"type":"text","text":"D"}]}}}"#,
    r#"{"dir":"s2c","msg":{"id":1,"result":{"turn":{"id":"u1"}}}}"#,
    r#"{"dir":"s2c","msg":{"id":2,"result":{"turn":{"id":"u2"}}}}"#,
    r#"{"dir":"s2c","msg":{"id":1,"error":{"message":"busy"}}}"#,
    r#"{"dir":"s2c","msg":{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}}"#,
    r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t1","item":{"type":"userMessage","content":[]}}}}"#,
    r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t3","item":{"type":"userMessage","content":[]}}}}"#,
    "torn",
];

proptest! {
    #[test]
    fn positions_rise_for_any_order_of_records(picked in prop::collection::vec(0_usize..ROLLOUT.len(), 1..24)) {
        let rollout = || codex::rollout(source_of("x".as_ref()));
        let connection = || codex::app_server(source_of("x".as_ref())).of_conversation();
        let lines = |pool: &[&'static str]| {
            let lines: Vec<&str> = picked.iter().map(|at| pool[at % pool.len()]).chain([""]).collect();
            lines.join("\n")
        };
        let (name, open): (_, Box<dyn Fn() -> Adapter>) = (format!("{picked:?}"), Box::new(rollout));
        check_restart(&Sample { name: name.clone(), open, pieces: vec![output(lines(&ROLLOUT).as_bytes())] });
        let pieces = vec![output(lines(&CONNECTION).as_bytes())];
        check_restart(&Sample { name, open: Box::new(connection), pieces });
    }
}

#[test]
fn waiting_prompt_keeps_positions_rising() {
    // The turn of the first thread never begins, and the second thread continues.
    let lines = [
        r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t1"}}}}"#,
        r#"{"dir":"s2c","msg":{"method":"thread/started","params":{"thread":{"id":"t2"}}}}"#,
        r#"{"dir":"c2s","msg":{"id":1,"method":"turn/start","params":{"threadId":"t1","input":[{"type":"text","text":"Lost?"}]}}}"#,
        r#"{"dir":"s2c","msg":{"method":"item/completed","params":{"threadId":"t2","item":{"type":"agentMessage","id":"m","text":"On."}}}}"#,
        "",
    ];
    let pieces = vec![output(lines.join("\n").as_bytes())];
    let open = || codex::app_server(source_of("x".as_ref())).of_conversation();
    let sample = Sample { name: "two threads".to_owned(), open: Box::new(open), pieces };
    assert_eq!(sample.read().of_type("message.user").count(), 1);
    check_restart(&sample);
}
