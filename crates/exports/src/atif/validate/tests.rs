//! Each rule is violated by one fault in a valid document.

use std::collections::BTreeMap;

use super::{DocumentFiles, FileLookup, Finding, NoFiles, Severity, validate};

/// A valid document to which every rule applies.
const GOOD: &str = r#"{
"schema_version":"ATIF-v1.8","session_id":"s","trajectory_id":"t",
"agent":{"name":"a","version":"1","model_name":"m","tool_definitions":[{"type":"function"}],"extra":{"x":1,"x":2}},
"steps":[
{"step_id":1,"timestamp":"2026-06-08T08:14:42Z","source":"user","message":[{"type":"text","text":"Hi"},{"type":"image","source":{"media_type":"image/png","path":"media/2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae.png"}}]},
{"step_id":2,"source":"agent","model_name":"m","reasoning_effort":"high","message":"","reasoning_content":"Hm","tool_calls":[{"tool_call_id":"c1","function_name":"f","arguments":{},"extra":{}},{"tool_call_id":"c2","function_name":"f","arguments":{"a":1}}],"observation":{"results":[{"source_call_id":"c1","content":"ok","subagent_trajectory_ref":[{"trajectory_id":"u"}]},{"source_call_id":"c2","content":[{"type":"audio","source":{"media_type":"audio/wav","path":"https://example.com/a.wav"}}],"extra":{}}]},"metrics":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4,"cost_usd":0.5,"logprobs":[-0.5],"completion_token_ids":[1]},"is_copied_context":false,"llm_call_count":1},
{"step_id":3,"source":"agent","message":"","tool_calls":[{"tool_call_id":"c3","function_name":"f","arguments":{}}],"llm_call_count":0},
{"step_id":4,"source":"system","message":"end","observation":{"results":[{"content":null,"subagent_trajectory_ref":[{"trajectory_path":"other.json"}]}]},"extra":null}],
"final_metrics":{"total_prompt_tokens":10,"total_completion_tokens":2,"total_cached_tokens":4,"total_cost_usd":0.5,"total_steps":4},
"continued_trajectory_ref":"next.json",
"extra":{},
"subagent_trajectories":[{"schema_version":"ATIF-v1.8","trajectory_id":"u","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":"Hi"}]}]}"#;

/// The files that the valid document refers to.
struct Files(BTreeMap<&'static str, &'static [u8]>);

impl DocumentFiles for Files {
    fn file(&mut self, path: &str) -> FileLookup {
        self.0.get(path).map_or(FileLookup::Nothing, |bytes| FileLookup::file(bytes))
    }
}

const MEDIUM: &str = "media/2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae.png";

fn files() -> Files {
    Files(BTreeMap::from([(MEDIUM, &b"foo"[..]), ("other.json", b"{}"), ("next.json", b"{}")]))
}

/// Puts a fault into the valid document, and expects exactly this finding at its place.
#[track_caller]
fn check(from: &str, to: &str, rule: &str, place: &str) {
    check_all(from, to, &[(rule, place)]);
}

#[track_caller]
fn check_all(from: &str, to: &str, want: &[(&str, &str)]) {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` marks one place");
    let found = validate(&GOOD.replace(from, to), &mut files());
    let found: Vec<_> = found.iter().map(|finding| (finding.rule, &*finding.place)).collect();
    assert_eq!(found, want, "{from} → {to}");
}

#[test]
fn valid_document_has_no_findings() {
    assert_eq!(validate(GOOD, &mut files()), []);
    assert_eq!(validate(GOOD, &mut NoFiles), []);
}

#[test]
fn invalid_json_is_reported() {
    check("\"extra\":{},\n\"subagent", "\"extra\":{,\n\"subagent", "json.syntax", "");
    check("\"message\":\"end\"", "\"message\":\"\\ud800\"", "json.surrogate", "");
    check("\"session_id\":\"s\"", "\"session_id\":\"s\",\"session_id\":\"s\"", "json.duplicate_key", "");
    let deep = format!("{}{}", "[".repeat(501), "]".repeat(501));
    check("\"extra\":{},\n", &format!("\"extra\":{{\"a\":{deep}}},\n"), "json.depth", "");
    let rules =
        |document: &str| validate(document, &mut NoFiles).iter().map(|found| found.rule).collect::<Vec<_>>();
    assert_eq!(rules("[]"), ["field.type"]);
    assert_eq!(rules(""), ["json.syntax"]);
}

#[test]
fn unknown_version_is_reported() {
    check("\"schema_version\":\"ATIF-v1.8\",\"session_id\"", "\"session_id\"", "version", "");
    check("ATIF-v1.8\",\"session_id\"", "ATIF-v1.9\",\"session_id\"", "version", "schema_version");
    check("ATIF-v1.8\",\"session_id\"", "ATIF-v1.08\",\"session_id\"", "version", "schema_version");
    check("\"ATIF-v1.8\",\"session_id\"", "null,\"session_id\"", "version", "schema_version");
}

#[test]
fn wrong_fields_are_reported() {
    check("\"message\":\"end\"", "\"message\":\"end\",\"color\":1", "field.unknown", "steps[3].color");
    check(
        "\"function_name\":\"f\",\"arguments\":{\"a\":1}",
        "\"arguments\":{\"a\":1}",
        "field.missing",
        "steps[1].tool_calls[1]",
    );
    check("\"message\":\"end\"", "\"message\":null", "field.type", "steps[3].message");
    check("\"arguments\":{\"a\":1}", "\"arguments\":[1]", "field.type", "steps[1].tool_calls[1].arguments");
    check("\"step_id\":4", "\"step_id\":\"4\"", "field.type", "steps[3].step_id");
    check("\"step_id\":4", "\"step_id\":4.0", "field.type", "steps[3].step_id");
    check(
        "\"is_copied_context\":false",
        "\"is_copied_context\":0",
        "field.type",
        "steps[1].is_copied_context",
    );
    check("\"logprobs\":[-0.5]", "\"logprobs\":[\"a\"]", "field.type", "steps[1].metrics.logprobs[0]");
    check("[{\"type\":\"function\"}]", "[1]", "field.type", "agent.tool_definitions[0]");
    check(
        "\"reasoning_effort\":\"high\"",
        "\"reasoning_effort\":true",
        "field.type",
        "steps[1].reasoning_effort",
    );
    check("\"source\":\"system\"", "\"source\":\"tool\"", "field.value", "steps[3].source");
    check(
        "\"prompt_tokens\":10,\"completion_tokens\":2,",
        "\"prompt_tokens\":10,\"completion_tokens\":-2,",
        "field.value",
        "steps[1].metrics.completion_tokens",
    );
    check("\"cost_usd\":0.5,\"log", "\"cost_usd\":-0.5,\"log", "field.value", "steps[1].metrics.cost_usd");
    check("\"total_cost_usd\":0.5", "\"total_cost_usd\":-1", "field.value", "final_metrics.total_cost_usd");
}

#[test]
fn time_must_be_rfc_3339() {
    check("2026-06-08T08:14:42Z", "2026-06-08", "time", "steps[0].timestamp");
    check("2026-06-08T08:14:42Z", "2026-06-31T08:14:42Z", "time", "steps[0].timestamp");
}

#[test]
fn fields_newer_than_the_version_are_reported() {
    // The embedded trajectory has its own version.
    let newer = |minor: u8| {
        let document = GOOD.replacen("ATIF-v1.8", &format!("ATIF-v1.{minor}"), 1);
        let found = validate(&document, &mut files());
        assert!(found.iter().all(|found| found.rule == "field.newer"), "{found:?}");
        found.into_iter().map(|found| found.place).collect::<Vec<_>>()
    };
    assert_eq!(newer(8), [""; 0]);
    assert_eq!(newer(7), ["steps[1].observation.results[1].content[0]"]);
    let six = newer(6);
    for place in [
        "trajectory_id",
        "subagent_trajectories",
        "steps[1].llm_call_count",
        "steps[1].tool_calls[0].extra",
        "steps[1].observation.results[1].extra",
        "steps[1].observation.results[0].subagent_trajectory_ref[0].trajectory_id",
    ] {
        assert!(six.iter().any(|found| found == place), "{place} in {six:?}");
    }
    assert!(newer(5).iter().any(|found| found == "steps[0].message"));
    assert!(newer(4).iter().any(|found| found == "agent.tool_definitions"));
    assert!(newer(4).iter().any(|found| found == "steps[1].is_copied_context"));
    assert!(newer(2).iter().any(|found| found == "steps[1].metrics.completion_token_ids"));
    assert!(newer(1).iter().any(|found| found == "steps[3].observation"));
    assert!(newer(0).iter().any(|found| found == "extra"));
}

#[test]
fn older_versions_need_a_session_id() {
    let old = r#"{"schema_version":"ATIF-v1.6","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":""}]}"#;
    let found = validate(old, &mut NoFiles);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "error field.missing: `session_id` is missing, which ATIF 1.6 needs");
}

#[test]
fn steps_must_be_numbered_from_one() {
    check("\"step_id\":3", "\"step_id\":7", "steps.number", "steps[2].step_id");
    let empty = "\"steps\":[{\"step_id\":1,\"source\":\"user\",\"message\":\"Hi\"}]}]}";
    check(empty, "\"steps\":[]}]}", "steps.empty", "subagent_trajectories[0].steps");
    check("\"total_steps\":4", "\"total_steps\":5", "totals.steps", "final_metrics.total_steps");
    let noted = GOOD.replace("\"total_steps\":4}", "\"total_steps\":5},\"notes\":\"One was lost.\"");
    assert_eq!(validate(&noted, &mut files()), []);
}

#[test]
fn agent_fields_in_other_steps_are_reported() {
    check(
        "\"message\":\"end\"",
        "\"message\":\"end\",\"tool_calls\":[]",
        "step.agent_only",
        "steps[3].tool_calls",
    );
    check(
        "\"llm_call_count\":0",
        "\"reasoning_content\":\"Hm\",\"llm_call_count\":0",
        "step.no_inference",
        "steps[2].reasoning_content",
    );
}

#[test]
fn duplicate_calls_and_unknown_results_are_reported() {
    check(
        "\"tool_call_id\":\"c2\",\"function_name\":\"f\",\"arguments\":{\"a\":1}}],\"observation\":{\"results\":[{\"source_call_id\":\"c1\",\"content\":\"ok\",\"subagent_trajectory_ref\":[{\"trajectory_id\":\"u\"}]},{\"source_call_id\":\"c2\",",
        "\"tool_call_id\":\"c1\",\"function_name\":\"f\",\"arguments\":{\"a\":1}}],\"observation\":{\"results\":[{\"source_call_id\":\"c1\",\"content\":\"ok\",\"subagent_trajectory_ref\":[{\"trajectory_id\":\"u\"}]},{",
        "call.duplicate",
        "steps[1].tool_calls[1].tool_call_id",
    );
    // The same in another step.
    check(
        "\"tool_call_id\":\"c3\"",
        "\"tool_call_id\":\"c1\"",
        "call.duplicate",
        "steps[2].tool_calls[0].tool_call_id",
    );
    check(
        "\"source_call_id\":\"c2\"",
        "\"source_call_id\":\"c3\"",
        "result.unknown_call",
        "steps[1].observation.results[1].source_call_id",
    );
    check(
        "\"source_call_id\":\"c2\"",
        "\"source_call_id\":\"c1\"",
        "result.duplicate",
        "steps[1].observation.results[1].source_call_id",
    );
}

#[test]
fn broken_subagent_references_are_reported() {
    let place = "steps[1].observation.results[0].subagent_trajectory_ref[0]";
    let alone = "subagent_trajectory_ref\":[{\"trajectory_id\":\"u\"";
    let found =
        validate(&GOOD.replace(alone, "subagent_trajectory_ref\":[{\"trajectory_id\":\"v\""), &mut files());
    let dangling = Finding {
        rule: "subagent.dangling",
        severity: Severity::Error,
        place: place.into(),
        words: "`v` is not embedded in this trajectory".into(),
    };
    let unreferenced = Finding {
        rule: "subagent.unreferenced",
        severity: Severity::Warning,
        place: "subagent_trajectories".into(),
        words: "no step refers to `u`".into(),
    };
    assert_eq!(found, [dangling, unreferenced]);
    let both = |with: &str| format!("{alone}}},{{{with}");
    let second = "steps[1].observation.results[0].subagent_trajectory_ref[1]";
    check(alone, &both("\"session_id\":\"u\""), "subagent.unresolvable", second);
    check(alone, &both("\"trajectory_id\":\"t\""), "subagent.circular", second);
    check(
        alone,
        &both("\"trajectory_path\":\"gone.json\""),
        "subagent.dangling",
        &format!("{second}.trajectory_path"),
    );
    check(
        "\"trajectory_path\":\"other.json\"",
        "\"trajectory_path\":\"gone.json\"",
        "subagent.dangling",
        "steps[3].observation.results[0].subagent_trajectory_ref[0].trajectory_path",
    );
    check("next.json", "gone.json", "continued.dangling", "continued_trajectory_ref");
    check_all(
        "\"trajectory_id\":\"t\"",
        "\"trajectory_id\":\"u\"",
        &[("subagent.circular", place), ("subagent.duplicate", "subagent_trajectories[0].trajectory_id")],
    );
    let embedded = "{\"schema_version\":\"ATIF-v1.8\",\"trajectory_id\":\"u\",";
    check(
        embedded,
        &format!(
            "{{\"schema_version\":\"ATIF-v1.8\",\"agent\":{{\"name\":\"a\",\"version\":\"1\"}},\"steps\":[{{\"step_id\":1,\"source\":\"user\",\"message\":\"\"}}]}},{embedded}"
        ),
        "subagent.id",
        "subagent_trajectories[0]",
    );
}

#[test]
fn inconsistent_counts_are_reported() {
    check_all(
        "\"cached_tokens\":4,\"cost_usd\":0.5,",
        "\"cached_tokens\":11,\"cost_usd\":0.5,",
        &[
            ("metrics.cached", "steps[1].metrics.cached_tokens"),
            ("totals.tokens", "final_metrics.total_cached_tokens"),
        ],
    );
    check(
        "\"total_completion_tokens\":2",
        "\"total_completion_tokens\":1",
        "totals.tokens",
        "final_metrics.total_completion_tokens",
    );
    check(
        "\"total_cached_tokens\":4",
        "\"total_cached_tokens\":11",
        "metrics.cached",
        "final_metrics.total_cached_tokens",
    );
}

#[test]
fn missing_or_changed_media_are_reported() {
    let path = format!("\"path\":\"{MEDIUM}\"");
    let place = "steps[0].message[1].source.path";
    check(&path, "\"path\":\"media/gone.png\"", "media.missing", place);
    check(&path, "\"path\":\"media/../../secret.png\"", "media.outside", place);
    check(&path, "\"path\":\"/etc/a.png\"", "media.outside", place);
    check(
        "\"media_type\":\"image/png\"",
        "\"media_type\":\"image/tiff\"",
        "field.value",
        "steps[0].message[1].source.media_type",
    );
    check(
        "\"media_type\":\"image/png\"",
        "\"media_type\":\"audio/wav\"",
        "media.part",
        "steps[0].message[1].source",
    );
    check("\"type\":\"text\",\"text\":\"Hi\"", "\"type\":\"text\"", "media.part", "steps[0].message[0]");
    let mut changed = files();
    changed.0.insert(MEDIUM, b"bar");
    let found = validate(GOOD, &mut changed);
    assert_eq!((found[0].rule, &*found[0].place, found.len()), ("media.hash", place, 1));
    // Harbor does not check the media of embedded trajectories.
    let inside = "\"steps\":[{\"step_id\":1,\"source\":\"user\",\"message\":\"Hi\"}]}]}";
    check(
        inside,
        "\"steps\":[{\"step_id\":1,\"source\":\"user\",\"message\":[{\"type\":\"image\",\"source\":{\"media_type\":\"image/png\",\"path\":\"gone.png\"}}]}]}]}",
        "media.missing",
        "subagent_trajectories[0].steps[0].message[0].source.path",
    );
}

#[test]
fn number_of_findings_is_limited() {
    let steps = "{},".repeat(2_000);
    let document = format!(
        r#"{{"schema_version":"ATIF-v1.8","agent":{{"name":"a","version":"1"}},"steps":[{steps}{{}}]}}"#
    );
    assert_eq!(validate(&document, &mut NoFiles).len(), super::FINDINGS_MAX);
}
