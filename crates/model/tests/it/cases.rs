//! Lines that a writer accepts and refuses, as data: the draft parser and the JSON Schema are both tested with these
//! tables, so that they cannot diverge.

use steno_model::{Error, EventType, RunId, Vocabulary};

use crate::kit::{OTHER_RUN, RUN, json, run, sent};

/// A line that is refused, why, and whether the schema can see it too.
pub struct Refusal {
    pub line: String,
    pub error: Error,
    pub schema: Schema,
}

/// Whether a JSON Schema can refuse a line too. It cannot see duplicate keys, the spelling of numbers, and the content
/// of other files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    RefusesToo,
    CannotSee,
}

use EventType as E;
use Schema::{CannotSee, RefusesToo};

const STEPS: [EventType; 6] = [
    E::RunStarted,
    E::RunCompleted,
    E::StepStarted,
    E::StepCompleted,
    E::CallWorkflowStarted,
    E::CallWorkflowCompleted,
];
const MESSAGES: [EventType; 2] = [E::MessageUser, E::MessageAssistant];
const TOOLS: [EventType; 2] = [E::ToolCall, E::ToolResult];

/// Everything that is refused.
pub fn refused() -> Vec<Refusal> {
    let tables =
        [not_events(), envelopes(), shapes(), calls_of_nobody(), steps(), messages(), blocks(), tools()];
    tables.into_iter().flatten().collect()
}

/// Lines that must be accepted, each with a payload that a writer may emit.
pub fn accepted() -> Vec<String> {
    let payloads = [
        (E::RunStarted, "null"),
        (E::RunStarted, r#"{"name":"claude","kind":"session","source":{"channel":"disk"}}"#),
        (E::RunCompleted, "null"),
        (E::RunCompleted, r#"{"name":"n","kind":"workflow","error":"exit code 3"}"#),
        (E::StepStarted, r#"{"name":"","kind":""}"#),
        (E::StepStarted, r#"{"kind":"agent","name":"analyze","error":null,"tool_call_id":"c"}"#),
        (E::StepCompleted, r#"{"name":"n","kind":"k","result":null}"#),
        (E::StepCompleted, r#"{"name":"n","kind":"k","error":"e","result":{"role":"r"},"result2":[]}"#),
        (E::CallWorkflowStarted, r#"{"name":"n","kind":"call_workflow"}"#),
        (E::CallWorkflowCompleted, r#"{"name":"n","kind":"subagent","result":"done"}"#),
        (E::MessageUser, r#"{"role":"user","blocks":[]}"#),
        (E::MessageAssistant, r#"{"blocks":[],"role":"assistant","usage":{"output_tokens":1},"kind":"k"}"#),
        (E::MessageAssistant, r#"{"role":"assistant","blocks":[],"call_id":7}"#),
        (E::ToolCall, r#"{"name":"n","call_id":"","input":null,"fidelity":"router"}"#),
        (
            E::ToolCall,
            r#"{"name":"n","call_id":"c","input":[],"output":1,"fidelity":"agent_emitted","kind":7}"#,
        ),
        (E::ToolResult, r#"{"name":"n","call_id":"c","output":null,"error":null,"fidelity":"router"}"#),
        (
            E::ToolResult,
            r#"{"name":"n","call_id":"c","input":1,"output":{},"error":"e","fidelity":"router"}"#,
        ),
    ];
    let blocks = [
        r#"{"type":"text","fidelity":"router","text":""}"#,
        r#"{"type":"text","fidelity":"agent_emitted","text":"a\u0000b","label":"system_prompt","thinking":1}"#,
        r#"{"thinking":"t","fidelity":"agent_emitted","type":"thinking","signature":"s"}"#,
        r#"{"type":"tool_use","fidelity":"router","tool_name":"n","tool_id":"t","tool_input":null}"#,
        r#"{"type":"tool_result","fidelity":"router","tool_id":"t","tool_content":null}"#,
        r#"{"type":"command","fidelity":"router","command":"ls"}"#,
        r#"{"type":"stream","fidelity":"agent_emitted","chunk":"c"}"#,
        r#"{"type":"stream","fidelity":"agent_emitted","chunk":"c","text":7}"#,
    ];
    let message = |block| sent(E::MessageAssistant, &format!(r#"{{"role":"assistant","blocks":[{block}]}}"#));
    let sent = payloads.into_iter().map(|(event_type, payload)| sent(event_type, payload));
    sent.chain(blocks.into_iter().map(message)).collect()
}

fn refusal(line: impl Into<String>, error: Error, schema: Schema) -> Refusal {
    Refusal { line: line.into(), error, schema }
}

fn missing(field: &'static str) -> Error {
    Error::MissingField { field }
}

fn wrong(field: &'static str, wanted: &'static str) -> Error {
    Error::WrongField { field, wanted }
}

fn twice(field: &'static str) -> Error {
    Error::DuplicateField { field: field.into() }
}

/// Invalid JSON; the tables leave out the parser's message.
fn not_json() -> Error {
    Error::NotJson { reason: String::new() }
}

fn not_events() -> Vec<Refusal> {
    let empty = ["", " ", "\r", "\t \n"].map(|line| refusal(line, Error::Empty, CannotSee));
    let garbage = [
        "nonsense",
        "{",
        r#"{"type":"#,
        r#"{"type":"run.started"}}"#,
        r#"{"type":"run.started",}"#,
        r#"{"type":"run.started"} {}"#,
        r#"{"type":"run.started","a":01}"#,
        "{\"type\":\"run.started\",\"a\":\"\u{0}\"}",
        r#"{"type":"run.started","a":"\u12"}"#,
        r#"{"type":"run.started","a":NaN}"#,
        "{'type':'run.started'}",
        "\u{feff}{\"type\":\"run.started\"}",
        "[1",
        "[1] x",
        "12 34",
        "nul",
        "\"abc",
    ]
    .map(|line| refusal(line, not_json(), CannotSee));
    let others = ["[]", r#"[{"type":"run.started"}]"#, "7", "null", "true", r#""run.started""#]
        .map(|line| refusal(line, Error::NotAnObject, RefusesToo));
    empty.into_iter().chain(garbage).chain(others).collect()
}

/// Lines of `run.started` with one envelope field that is wrong.
fn envelopes() -> Vec<Refusal> {
    let seq = Error::ForbiddenField { field: "seq", reason: "the journal numbers events as it writes them" };
    let other = Error::OtherRun { wanted: run(), found: RunId::parse(OTHER_RUN).unwrap() };
    let bad_id = |text: &str| RunId::parse(text).unwrap_err();
    let (whole, a_string) = ("a whole number from 0", "a string");
    let fields = [
        (r#""seq":1"#.to_owned(), seq.clone(), CannotSee),
        (r#""seq":null"#.to_owned(), seq.clone(), CannotSee),
        (r#""\u0073eq":1"#.to_owned(), seq, CannotSee),
        (format!(r#""run_id":"{OTHER_RUN}""#), other, CannotSee),
        (r#""run_id":"../x""#.to_owned(), bad_id("../x"), RefusesToo),
        (r#""run_id":7"#.to_owned(), wrong("run_id", "a UUID"), RefusesToo),
        (r#""parent_run_id":"x""#.to_owned(), bad_id("x"), RefusesToo),
        (r#""child_run_id":{}"#.to_owned(), wrong("child_run_id", "a UUID"), RefusesToo),
        (r#""iteration":-1"#.to_owned(), wrong("iteration", whole), RefusesToo),
        (r#""iteration":1.5"#.to_owned(), wrong("iteration", whole), RefusesToo),
        (r#""iteration":"0""#.to_owned(), wrong("iteration", whole), RefusesToo),
        (r#""iteration":null"#.to_owned(), wrong("iteration", whole), RefusesToo),
        (r#""iteration":1.0"#.to_owned(), wrong("iteration", whole), CannotSee),
        (r#""iteration":1e0"#.to_owned(), wrong("iteration", whole), CannotSee),
        (r#""iteration":-0"#.to_owned(), wrong("iteration", whole), CannotSee),
        (r#""iteration":18446744073709551616"#.to_owned(), wrong("iteration", whole), CannotSee),
        (r#""path":7"#.to_owned(), wrong("path", a_string), RefusesToo),
        (r#""path":null"#.to_owned(), wrong("path", a_string), RefusesToo),
        (r#""path":"","path":"""#.to_owned(), twice("path"), CannotSee),
        (r#""typ\u0065":"run.started""#.to_owned(), twice("type"), CannotSee),
        (format!(r#""run_id":"{RUN}","\u0072un_id":"{RUN}""#), twice("run_id"), CannotSee),
        (r#""payload":null,"payload":null"#.to_owned(), twice("payload"), CannotSee),
        (r#""mine":1,"min\u0065":1"#.to_owned(), twice("mine"), CannotSee),
    ];
    let lines = fields
        .into_iter()
        .map(|(field, error, schema)| refusal(format!(r#"{{"type":"run.started",{field}}}"#), error, schema));
    lines.chain(times()).chain(event_types()).collect()
}

fn times() -> Vec<Refusal> {
    let time = |text: &str| format!(r#"{{"type":"run.started","timestamp":{text}}}"#);
    let error = wrong("timestamp", "an RFC 3339 time like 2026-06-08T08:14:42.123Z");
    let bad = [
        r#""""#,
        r#""yesterday""#,
        r#""2026-06-08""#,
        r#""2026-06-08 08:14:42Z""#,
        r#""2026-06-08T08:14:42""#,
        r#""2026-06-08T08:14:42+0000""#,
        r#""2026-06-08T08:14:42.Z""#,
        r#""2026-06-08T08:14Z""#,
        r#""2026-13-08T08:14:42Z""#,
        r#""2026-06-08T25:14:42Z""#,
        r#""2026-06-08T08:14:42.1234567891Z""#,
        r#""20260608T081442Z""#,
        r#""2026-06-08T08:14:42Z[UTC]""#,
        r#""1780906482""#,
        r#"" 2026-06-08T08:14:42Z""#,
    ];
    let mut refusals: Vec<_> =
        bad.iter().map(|text| refusal(time(text), error.clone(), RefusesToo)).collect();
    refusals.push(refusal(time(r#""2026-02-30T08:14:42Z""#), error, CannotSee));
    let beyond = wrong("timestamp", "a time that in UTC lies in the years 0000 to 9999");
    refusals.push(refusal(time(r#""9999-12-31T23:59:59-01:00""#), beyond, RefusesToo));
    refusals.push(refusal(time("1780906482"), wrong("timestamp", "a string or null"), RefusesToo));
    refusals
}

fn event_types() -> Vec<Refusal> {
    let unknown = ["run.paused", "Run.Started", "", "run.started ", "step", "tool_use", "\u{fffd}"];
    let mut refusals: Vec<_> = unknown
        .iter()
        .map(|word| {
            let error = Error::UnknownEventType { found: (*word).into() };
            refusal(format!(r#"{{"type":"{word}","payload":null}}"#), error, RefusesToo)
        })
        .collect();
    refusals.push(refusal(r#"{"payload":null}"#, missing("type"), RefusesToo));
    refusals.push(refusal("{}", missing("type"), RefusesToo));
    refusals.push(refusal(r#"{"type":null}"#, wrong("type", "a string"), RefusesToo));
    refusals.push(refusal(r#"{"type":["run.started"]}"#, wrong("type", "a string"), RefusesToo));
    refusals
}

/// Payloads that are not objects, for every type.
fn shapes() -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for event_type in E::ALL.iter().copied() {
        let (wanted, may_be_null) = match event_type {
            E::RunStarted | E::RunCompleted => ("an object with `name` and `kind`", true),
            E::StepStarted | E::StepCompleted | E::CallWorkflowStarted | E::CallWorkflowCompleted => {
                ("an object with `name` and `kind`", false)
            }
            E::MessageUser | E::MessageAssistant => ("an object with `role` and `blocks`", false),
            E::ToolCall | E::ToolResult => ("an object with `name`, `call_id` and `fidelity`", false),
        };
        let error = Error::WrongPayload { event_type, wanted };
        for payload in ["[]", "7", "true", r#""text""#, "[null]"] {
            refusals.push(refusal(sent(event_type, payload), error.clone(), RefusesToo));
        }
        if !may_be_null {
            let without = format!(r#"{{"type":"{event_type}"}}"#);
            refusals.push(refusal(sent(event_type, "null"), error.clone(), RefusesToo));
            refusals.push(refusal(without, error, RefusesToo));
        }
    }
    refusals
}

/// Calls of a workflow without the run they call (R58).
fn calls_of_nobody() -> Vec<Refusal> {
    let types = [E::CallWorkflowStarted, E::CallWorkflowCompleted];
    let line = |child: &str, event_type| {
        format!(r#"{{"type":"{event_type}",{child}"payload":{{"name":"n","kind":"call_workflow"}}}}"#)
    };
    let absent = types.map(|event_type| refusal(line("", event_type), missing("child_run_id"), RefusesToo));
    let null = types.map(|event_type| {
        refusal(line(r#""child_run_id":null,"#, event_type), missing("child_run_id"), RefusesToo)
    });
    absent.into_iter().chain(null).collect()
}

fn steps() -> Vec<Refusal> {
    let role = Error::ForbiddenField { field: "role", reason: "it marks a message" };
    let call = Error::ForbiddenField { field: "call_id", reason: "it marks a call; use `tool_call_id`" };
    let payloads = [
        ("{}", missing("name"), RefusesToo),
        (r#"{"kind":"k"}"#, missing("name"), RefusesToo),
        (r#"{"name":"n"}"#, missing("kind"), RefusesToo),
        (r#"{"name":1,"kind":"k"}"#, wrong("name", "a string"), RefusesToo),
        (r#"{"name":"n","kind":null}"#, wrong("kind", "a string"), RefusesToo),
        (r#"{"name":"n","kind":"k","error":{}}"#, wrong("error", "a string or null"), RefusesToo),
        (r#"{"name":"n","kind":"k","kind":"k"}"#, twice("kind"), CannotSee),
        (r#"{"name":"n","kind":"k","result":1,"r\u0065sult":1}"#, twice("result"), CannotSee),
        (r#"{"name":"n","kind":"k","role":"user"}"#, role.clone(), RefusesToo),
        (r#"{"name":"n","kind":"k","role":null}"#, role.clone(), RefusesToo),
        (r#"{"name":"n","kind":"k","\u0072ole":1}"#, role, RefusesToo),
        (r#"{"name":"n","kind":"k","call_id":"c"}"#, call, RefusesToo),
    ];
    per_type(&STEPS, &payloads)
}

fn messages() -> Vec<Refusal> {
    let unknown_role = Error::UnknownWord { vocabulary: "role", found: "system".into() };
    let blocks = wrong("blocks", "an array of blocks");
    let payloads = [
        ("{}", missing("role"), RefusesToo),
        (r#"{"blocks":[]}"#, missing("role"), RefusesToo),
        (r#"{"role":"user"}"#, missing("blocks"), RefusesToo),
        (r#"{"role":"assistant"}"#, missing("blocks"), RefusesToo),
        (r#"{"role":"user","blocks":{}}"#, blocks.clone(), RefusesToo),
        (r#"{"role":"user","blocks":null}"#, blocks.clone(), RefusesToo),
        (r#"{"role":"user","blocks":"text"}"#, blocks, RefusesToo),
        (r#"{"role":"user","blocks":[null]}"#, Error::NotAnObject, RefusesToo),
        (r#"{"role":7,"blocks":[]}"#, wrong("role", "a string"), RefusesToo),
        (r#"{"role":"system","blocks":[]}"#, unknown_role, RefusesToo),
    ];
    let mut refusals = per_type(&MESSAGES, &payloads);
    let (user, assistant) = (r#"{"role":"user","blocks":[]}"#, r#"{"role":"assistant","blocks":[]}"#);
    let doubled = r#"{"role":"user","role":"user","blocks":[]}"#;
    refusals.push(refusal(sent(E::MessageUser, doubled), twice("role"), CannotSee));
    refusals.push(refusal(sent(E::MessageUser, assistant), wrong("role", "user"), RefusesToo));
    refusals.push(refusal(sent(E::MessageAssistant, user), wrong("role", "assistant"), RefusesToo));
    refusals
}

fn blocks() -> Vec<Refusal> {
    let fidelity = Error::UnknownWord { vocabulary: "fidelity", found: "rumour".into() };
    let (a_string, hologram) = ("a string", Error::UnknownBlockType { found: "hologram".into() });
    let table = [
        (r#""fidelity":"router","text":"t""#, missing("type"), RefusesToo),
        (r#""type":7,"fidelity":"router","text":"t""#, wrong("type", a_string), RefusesToo),
        (r#""type":"hologram","fidelity":"router""#, hologram, RefusesToo),
        (r#""type":"text","text":"t""#, missing("fidelity"), RefusesToo),
        (r#""type":"text","fidelity":"rumour","text":"t""#, fidelity, RefusesToo),
        (r#""type":"text","fidelity":null,"text":"t""#, wrong("fidelity", a_string), RefusesToo),
        (r#""type":"text","fidelity":"router""#, missing("text"), RefusesToo),
        (r#""type":"text","fidelity":"router","text":7"#, wrong("text", a_string), RefusesToo),
        (r#""type":"text","fidelity":"router","text":null"#, wrong("text", a_string), RefusesToo),
        (r#""type":"thinking","fidelity":"router""#, missing("thinking"), RefusesToo),
        (r#""type":"thinking","fidelity":"router","thinking":[]"#, wrong("thinking", a_string), RefusesToo),
        (
            r#""type":"tool_use","fidelity":"router","tool_id":"t","tool_input":1"#,
            missing("tool_name"),
            RefusesToo,
        ),
        (
            r#""type":"tool_use","fidelity":"router","tool_name":"n","tool_input":1"#,
            missing("tool_id"),
            RefusesToo,
        ),
        (
            r#""type":"tool_use","fidelity":"router","tool_name":"n","tool_id":"t""#,
            missing("tool_input"),
            RefusesToo,
        ),
        (r#""type":"tool_use","fidelity":"router","tool_name":1"#, wrong("tool_name", a_string), RefusesToo),
        (r#""type":"tool_result","fidelity":"router","tool_content":1"#, missing("tool_id"), RefusesToo),
        (r#""type":"tool_result","fidelity":"router","tool_id":"t""#, missing("tool_content"), RefusesToo),
        (r#""type":"tool_result","fidelity":"router","tool_id":1"#, wrong("tool_id", a_string), RefusesToo),
        (r#""type":"command","fidelity":"router""#, missing("command"), RefusesToo),
        (r#""type":"command","fidelity":"router","command":{}"#, wrong("command", a_string), RefusesToo),
        (r#""type":"stream","fidelity":"router""#, missing("chunk"), RefusesToo),
        (r#""type":"stream","fidelity":"router","text":"t""#, missing("chunk"), RefusesToo),
        (r#""type":"stream","fidelity":"router","chunk":7"#, wrong("chunk", a_string), RefusesToo),
        (r#""type":"text","type":"text","fidelity":"router","text":"t""#, twice("type"), CannotSee),
        (r#""type":"text","fidelity":"router","text":"t","text":"t""#, twice("text"), CannotSee),
    ];
    let lines = table.into_iter().map(|(block, error, schema)| {
        let good = r#"{"type":"text","fidelity":"router","text":"fine"}"#;
        let payload = json(&format!(r#"{{"role":"user","blocks":[{good},{{{block}}}]}}"#));
        refusal(sent(E::MessageUser, payload.as_str()), error, schema)
    });
    lines.collect()
}

fn tools() -> Vec<Refusal> {
    let role = Error::ForbiddenField { field: "role", reason: "it marks a message" };
    let fidelity = Error::UnknownWord { vocabulary: "fidelity", found: "Router".into() };
    let (a_string, rest) = ("a string", r#""input":1,"output":1,"fidelity":"router""#);
    let payloads = [
        ("{}".to_owned(), missing("name"), RefusesToo),
        (format!(r#"{{"call_id":"c",{rest}}}"#), missing("name"), RefusesToo),
        (format!(r#"{{"name":"n",{rest}}}"#), missing("call_id"), RefusesToo),
        (format!(r#"{{"name":null,"call_id":"c",{rest}}}"#), wrong("name", a_string), RefusesToo),
        (format!(r#"{{"name":"n","call_id":7,{rest}}}"#), wrong("call_id", a_string), RefusesToo),
        (
            format!(r#"{{"name":"n","call_id":"c","error":7,{rest}}}"#),
            wrong("error", "a string or null"),
            RefusesToo,
        ),
        (format!(r#"{{"name":"n","call_id":"c","role":"tool",{rest}}}"#), role, RefusesToo),
        (format!(r#"{{"name":"n","call_id":"c","call_id":"c",{rest}}}"#), twice("call_id"), CannotSee),
        (r#"{"name":"n","call_id":"c","input":1,"output":1}"#.to_owned(), missing("fidelity"), RefusesToo),
        (
            r#"{"name":"n","call_id":"c","input":1,"output":1,"fidelity":"Router"}"#.to_owned(),
            fidelity,
            RefusesToo,
        ),
    ];
    let payloads: Vec<_> =
        payloads.iter().map(|(text, error, schema)| (text.as_str(), error.clone(), *schema)).collect();
    let mut refusals = per_type(&TOOLS, &payloads);
    let no_input = r#"{"name":"n","call_id":"c","output":1,"fidelity":"router"}"#;
    let no_output = r#"{"name":"n","call_id":"c","input":1,"fidelity":"router"}"#;
    refusals.push(refusal(sent(E::ToolCall, no_input), missing("input"), RefusesToo));
    refusals.push(refusal(sent(E::ToolResult, no_output), missing("output"), RefusesToo));
    refusals
}

fn per_type(event_types: &[EventType], payloads: &[(&str, Error, Schema)]) -> Vec<Refusal> {
    let pairs =
        event_types.iter().flat_map(|event_type| payloads.iter().map(move |payload| (event_type, payload)));
    pairs
        .map(|(event_type, (text, error, schema))| refusal(sent(*event_type, text), error.clone(), *schema))
        .collect()
}
