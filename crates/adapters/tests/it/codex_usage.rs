//! Usage of a Codex thread that has exact usage at first and only totals later.

use steno_adapters::{Source, codex};

use crate::adapter_output::made_of_lines;

#[test]
fn thread_continued_without_exact_usage_counts_its_totals() {
    let exact = r#"{"type":"token_usage_record","payload":{"response_id":"r1","usage":{"input_tokens":110,"total_tokens":110}}}"#;
    let total = |total: u32| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total},"total_tokens":{total}}},"last_token_usage":{{"input_tokens":110,"total_tokens":110}}}}}}}}"#
        )
    };
    let header = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
    let lines = [header, exact, &total(110), &total(220), &total(330)];
    let made = made_of_lines(codex::rollout(Source::named("s1")), &lines);
    let used: Vec<u64> = made
        .payloads("message.assistant")
        .iter()
        .map(|message| message["usage"]["total_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(used, [110, 110, 110]);
}
