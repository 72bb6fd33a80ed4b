//! Tests which usage counts, and that it counts once.

use super::*;

const MAIN: &str = "00000000-0000-4000-8000-000000000001";
const FORK: &str = "00000000-0000-4000-8000-000000000002";
const CHILD: &str = "00000000-0000-4000-8000-000000000003";

fn event(run: &str, extra: &str, event_type: &str, time: &str, payload: &str) -> ExchangeEvent {
    let line = format!(
        r#"{{"seq":1,"run_id":"{run}"{extra},"type":"{event_type}","path":"","iteration":0,"timestamp":"{time}","payload":{payload}}}"#
    );
    ExchangeEvent::parse(line.as_bytes()).unwrap()
}

fn started(run: &str, extra: &str, time: &str) -> ExchangeEvent {
    event(run, extra, "run.started", time, r#"{"name":"claude","kind":"session"}"#)
}

fn said(run: &str, response: &str, output: u64, is_final: bool) -> ExchangeEvent {
    let payload = format!(
        r#"{{"role":"assistant","blocks":[],"response":"{response}","model":"m","usage":{{"input_tokens":10,"output_tokens":{output}}},"usage_scope":"response","final":{is_final}}}"#
    );
    event(run, "", "message.assistant", "2026-06-08T08:14:42Z", &payload)
}

fn turn(run: &str, output: u64) -> ExchangeEvent {
    let payload = format!(
        r#"{{"role":"assistant","blocks":[],"usage":{{"output_tokens":{output}}},"usage_scope":"turn"}}"#
    );
    event(run, "", "message.assistant", "2026-06-08T09:00:00Z", &payload)
}

/// Shows each row as `session responses input output`, with `≥` before a lower bound.
#[track_caller]
fn check(events: &[ExchangeEvent], want: &[&str]) {
    let rows = |events: &mut dyn Iterator<Item = &ExchangeEvent>| {
        let mut builder = UsageBuilder::new();
        events.for_each(|event| builder.push(event));
        let show = |(key, used): (RowKey, TokenUsage)| {
            let mark = if used.is_lower_bound { "≥" } else { "" };
            let session = key.session.to_string();
            let tokens = used.tokens;
            format!("{} {} {mark}{} {mark}{}", &session[35..], used.responses, tokens.input, tokens.output)
        };
        builder.finish().into_iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(rows(&mut events.iter()), want);
}

#[test]
fn response_in_several_records_counts_once() {
    let events = [
        started(MAIN, "", "2026-06-08T08:00:00Z"),
        said(MAIN, "r1", 1, false),
        said(MAIN, "r1", 50, true),
        said(MAIN, "r1", 50, true),
        said(MAIN, "r2", 7, true),
    ];
    check(&events, &["1 2 20 57"]);
}

#[test]
fn copied_response_counts_in_the_earliest_run() {
    let one = [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 50, true)];
    let other =
        [started(FORK, "", "2026-06-09T08:00:00Z"), said(FORK, "r1", 50, true), said(FORK, "r2", 3, true)];
    let want = ["1 1 10 50", "2 1 10 3"];
    check(&[&one[..], &other[..]].concat(), &want);
    check(&[&other[..], &one[..]].concat(), &want);
}

#[test]
fn subagent_tokens_count_for_the_session() {
    let parent = format!(r#","parent_run_id":"{MAIN}""#);
    let events = [
        started(MAIN, "", "2026-06-08T08:00:00Z"),
        said(MAIN, "r1", 1, true),
        started(CHILD, &parent, "2026-06-08T08:01:00Z"),
        said(CHILD, "r2", 2, true),
    ];
    check(&events, &["1 2 20 3"]);
}

#[test]
fn counts_that_are_not_final_are_lower_bounds() {
    check(&[started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 1, false)], &["1 1 ≥10 ≥1"]);
}

#[test]
fn turn_totals_count_only_without_final_responses() {
    let start = started(MAIN, "", "2026-06-08T08:00:00Z");
    check(&[start.clone(), said(MAIN, "r1", 1, false), turn(MAIN, 90)], &["1 1 0 90"]);
    check(&[start, said(MAIN, "r1", 80, true), turn(MAIN, 90)], &["1 1 10 80"]);
}

#[test]
fn channels_of_one_session_count_once() {
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let events = [
        started(MAIN, "", "2026-06-08T08:00:00Z"),
        said(MAIN, "r1", 80, true),
        started(FORK, &outside, "2026-06-08T08:00:01Z"),
        said(FORK, "r1", 1, false),
        turn(FORK, 80),
    ];
    check(&events, &["1 1 10 80"]);
}

fn numbered(run: &str, number: u32, output: u64) -> ExchangeEvent {
    let payload = format!(
        r#"{{"role":"assistant","blocks":[],"response":{number},"usage":{{"output_tokens":{output}}},"usage_scope":"response","final":true}}"#
    );
    event(run, "", "message.assistant", "2026-06-08T08:14:42Z", &payload)
}

#[test]
fn ids_win_over_numbers_of_one_run() {
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let stream =
        [started(FORK, &outside, "2026-06-08T08:00:01Z"), numbered(FORK, 1, 5), numbered(FORK, 2, 6)];
    check(&stream, &["1 2 0 11"]);
    let disk = [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 11, true)];
    check(&[&stream[..], &disk[..]].concat(), &["1 1 10 11"]);
    let other = [started(CHILD, "", "2026-06-08T08:00:02Z"), numbered(CHILD, 1, 7)];
    check(&[&stream[..], &other[..]].concat(), &["1 2 0 11", "3 1 0 7"]);
}

#[test]
fn session_total_counts_only_alone() {
    let total = |output: u64| {
        let payload = format!(
            r#"{{"role":"assistant","blocks":[],"usage":{{"output_tokens":{output}}},"usage_scope":"session"}}"#
        );
        event(MAIN, "", "message.assistant", "2026-06-08T09:00:00Z", &payload)
    };
    let start = started(MAIN, "", "2026-06-08T08:00:00Z");
    check(&[start.clone(), total(40), total(90)], &["1 1 ≥0 ≥90"]);
    check(&[start.clone(), total(80), turn(MAIN, 80)], &["1 1 0 80"]);
    check(&[start, total(90), turn(MAIN, 80)], &["1 1 ≥0 ≥80"]);
}

#[test]
fn session_total_is_split_by_model() {
    let payload = r#"{"role":"assistant","blocks":[],"usage":{"a":{"inputTokens":1,"outputTokens":2},"b":{"outputTokens":3}},"usage_scope":"session"}"#;
    let total = event(MAIN, "", "message.assistant", "2026-06-08T09:00:00Z", payload);
    check(&[started(MAIN, "", "2026-06-08T08:00:00Z"), total], &["1 1 ≥1 ≥2", "1 1 ≥0 ≥3"]);
}

#[test]
fn larger_session_total_makes_a_lower_bound_except_in_forks() {
    let total = |run: &str, output: u64| {
        let payload = format!(
            r#"{{"role":"assistant","blocks":[],"usage":{{"m":{{"outputTokens":{output}}}}},"usage_scope":"session"}}"#
        );
        event(run, "", "message.assistant", "2026-06-08T09:00:00Z", &payload)
    };
    let main =
        |output| [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 50, true), total(MAIN, output)];
    check(&main(50), &["1 1 10 50"]);
    check(&main(64), &["1 1 ≥10 ≥50"]);
    let fork = [
        started(FORK, "", "2026-06-09T08:00:00Z"),
        said(FORK, "r1", 50, true),
        said(FORK, "r2", 3, true),
        total(FORK, 53),
    ];
    check(&[&main(50)[..], &fork[..]].concat(), &["1 1 10 50", "2 1 10 3"]);
}

#[test]
fn copied_turns_count_once() {
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let copy = |run: &str| {
        let payload =
            r#"{"role":"assistant","blocks":[],"id":"u1","usage":{"output_tokens":90},"usage_scope":"turn"}"#;
        let turn = event(run, "", "message.assistant", "2026-06-08T09:00:00Z", payload);
        [started(run, &outside, "2026-06-08T08:00:00Z"), said(run, "r1", 1, false), turn]
    };
    check(&[copy(FORK), copy(CHILD)].concat(), &["1 1 0 90"]);
}

#[test]
fn turn_total_goes_to_the_last_model() {
    let mut builder = UsageBuilder::new();
    let events = [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 1, false), turn(MAIN, 9)];
    for event in &events {
        builder.push(event);
    }
    let models: Vec<_> = builder.finish().into_keys().map(|key| key.model).collect();
    assert_eq!(models, ["m"]);
}

#[test]
fn turn_total_covers_only_its_own_responses() {
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let file =
        [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 1, false), said(MAIN, "r2", 1, false)];
    let stream = |responses: &[&str]| {
        let said = responses.iter().map(|response| said(FORK, response, 1, false));
        let start = started(FORK, &outside, "2026-06-08T08:00:01Z");
        [start].into_iter().chain(said).chain([turn(FORK, 80)]).collect::<Vec<_>>()
    };
    check(&[&file[..], &stream(&["r1", "r2"])].concat(), &["1 2 0 80"]);
    check(&[&file[..], &stream(&["r2"])].concat(), &["1 2 ≥10 ≥81"]);
    let cut = [stream(&["r1"]), vec![said(FORK, "r3", 1, false)]].concat();
    check(&cut, &["1 2 ≥10 ≥81"]);
}

#[test]
fn run_with_ids_and_numbers_counts_both() {
    let start = started(MAIN, "", "2026-06-08T08:00:00Z");
    let events = [start, grown(MAIN, "", 5, 5), said(MAIN, "r1", 50, true)];
    check(&events, &["1 1 0 5", "1 1 10 50"]);
}

#[test]
fn fractional_count_makes_a_lower_bound() {
    for (count, want) in [("7", "1 1 0 7"), ("null", "1 1 0 0"), ("1e3", "1 1 ≥0 ≥0"), ("\"7\"", "1 1 ≥0 ≥0")]
    {
        let payload = format!(
            r#"{{"role":"assistant","blocks":[],"response":"r","usage":{{"output_tokens":{count}}},"usage_scope":"response","final":true}}"#
        );
        let said = event(MAIN, "", "message.assistant", "2026-06-08T09:00:00Z", &payload);
        check(&[started(MAIN, "", "2026-06-08T08:00:00Z"), said], &[want]);
    }
}

/// Returns a response without an id, with the total of its thread.
fn grown(run: &str, extra: &str, total: u64, output: u64) -> ExchangeEvent {
    let payload = format!(
        r#"{{"role":"assistant","blocks":[],"response":{total},"thread_tokens":{total},"usage":{{"output_tokens":{output}}},"usage_scope":"response","final":true}}"#
    );
    event(run, extra, "message.assistant", "2026-06-08T08:14:42Z", &payload)
}

#[test]
fn thread_totals_identify_responses_without_ids() {
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let disk = [started(MAIN, "", "2026-06-08T08:00:00Z"), grown(MAIN, "", 5, 5), grown(MAIN, "", 11, 6)];
    let channel =
        [started(FORK, &outside, "2026-06-08T08:00:01Z"), grown(FORK, "", 11, 6), grown(FORK, "", 18, 7)];
    check(&[&disk[..], &channel[..]].concat(), &["1 3 0 18"]);
    let copied = format!(r#","copied_from":"{MAIN}""#);
    let fork =
        [started(CHILD, "", "2026-06-09T08:00:00Z"), grown(CHILD, &copied, 11, 6), grown(CHILD, "", 13, 2)];
    check(&[&disk[..], &fork[..]].concat(), &["1 2 0 11", "3 1 0 2"]);
}

#[test]
fn session_totals_are_not_summed_and_zero_is_ignored() {
    let total = |run: &str, output: u64| {
        let payload = format!(
            r#"{{"role":"assistant","blocks":[],"usage":{{"output_tokens":{output}}},"usage_scope":"session"}}"#
        );
        event(run, "", "message.assistant", "2026-06-08T09:00:00Z", &payload)
    };
    let outside = format!(r#","session_run_id":"{MAIN}""#);
    let runs =
        [started(FORK, &outside, "2026-06-08T08:00:00Z"), started(CHILD, &outside, "2026-06-08T09:00:00Z")];
    check(&[&runs[..], &[total(FORK, 40), total(CHILD, 90)]].concat(), &["1 1 ≥0 ≥90"]);
    check(&[&runs[..], &[total(FORK, 0)]].concat(), &[]);
    check(&[&runs[..], &[turn(FORK, 0), total(FORK, 7)]].concat(), &["1 1 ≥0 ≥7"]);
}

#[test]
fn incomplete_source_makes_a_lower_bound() {
    let mut builder = UsageBuilder::new();
    for event in [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 5, true)] {
        builder.push(&event);
    }
    builder.mark_incomplete(RunId::parse(MAIN).unwrap());
    assert!(builder.finish().values().all(|used| used.is_lower_bound));
}

#[test]
fn unreadable_record_makes_a_lower_bound() {
    let step = |name: &str| {
        let payload = format!(r#"{{"name":"{name}","kind":"unknown"}}"#);
        event(MAIN, "", "step.completed", "2026-06-08T08:14:42Z", &payload)
    };
    let start = started(MAIN, "", "2026-06-08T08:00:00Z");
    check(&[start.clone(), said(MAIN, "r1", 5, true), step("new-type")], &["1 1 10 5"]);
    check(&[start, said(MAIN, "r1", 5, true), step("unreadable")], &["1 1 ≥10 ≥5"]);
}

#[test]
fn sum_of_a_process_counts_what_its_parts_do_not_explain() {
    const STREAM: &str = FORK;
    let (outside, below) =
        (format!(r#","session_run_id":"{MAIN}""#), format!(r#","parent_run_id":"{MAIN}""#));
    let process = |run: &str, time: &str, extra: &str, output: u64| {
        let payload = format!(
            r#"{{"role":"assistant","blocks":[],"model":"m","usage":{{"input_tokens":30,"output_tokens":{output}}},"usage_scope":"process"}}"#
        );
        event(run, extra, "message.assistant", time, &payload)
    };
    let end = "2026-06-08T09:00:00Z";
    let stream = [started(STREAM, &outside, "2026-06-08T08:00:00Z"), process(STREAM, end, "", 12)];
    let file = [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 5, true)];
    let child = [started(CHILD, &below, "2026-06-08T08:00:00Z"), said(CHILD, "r2", 7, true)];
    check(&stream, &["1 1 ≥30 ≥12"]);
    check(&[&stream[..], &file[..]].concat(), &["1 1 ≥30 ≥12"]);
    check(&[&stream[..], &child[..]].concat(), &["1 2 ≥30 ≥12"]);
    // The parts have 20 of the input.
    check(&[&stream[..], &file[..], &child[..]].concat(), &["1 2 ≥30 ≥12"]);
    check(&[&file[..], &child[..]].concat(), &["1 2 20 12"]);
    // Less than its parts; nothing at all; a copy of the same record; another process.
    let less = [started(STREAM, &outside, "2026-06-08T08:00:00Z"), process(STREAM, end, "", 1)];
    let more = [started(MAIN, "", "2026-06-08T08:00:00Z"), said(MAIN, "r1", 50, true)];
    check(&[&less[..], &more[..]].concat(), &["1 1 10 50"]);
    check(&[&stream[..], &[process(STREAM, end, "", 12)]].concat(), &["1 1 ≥30 ≥12"]);
    let later = "2026-06-08T10:00:00Z";
    check(&[&stream[..], &[process(STREAM, later, "", 12)]].concat(), &["1 2 ≥60 ≥24"]);
    let inferred = r#","ts_inferred":true"#;
    let copies = [process(STREAM, end, inferred, 12), process(STREAM, later, inferred, 12)];
    check(&[&stream[..1], &copies[..]].concat(), &["1 1 ≥30 ≥12"]);
}
