//! Items: Codex's own form of the model's work, the same on every surface but spelled differently.

use serde_json::value::RawValue;
use steno_model::StepPayload;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};

use super::rejections::{is_rejection, rejection_in};
use super::wire::{Duration, Failure, Invocation, Item, McpResult, OkOrErr, Part, Payload};
use crate::emit::{Answer, CallReport, Outcome, push, string};
use crate::repeats::{amendment, hash_of};
use crate::run::Class;
use crate::shapes::words;
use crate::wire::{Raw, RawField as _, object};

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    UserMessage,
    AgentMessage,
    Reasoning,
    Tool(Tool),
    Compaction,
    SubagentActivity,
    /// A fact of the session, with its name.
    Fact(&'static str),
    Warning,
    Unknown,
}

/// The tool of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Command,
    FileChange,
    Mcp,
    Dynamic,
    Collab,
    WebSearch,
    ImageView,
    ImageGeneration,
    Sleep,
    /// The output of a call without an item.
    Output,
}

/// Returns an item's type as it is spelled.
pub(super) fn type_of(item: &Item<'_>) -> String {
    item.kind.or(item.legacy_kind).text().unwrap_or_default().into_owned()
}

/// Returns the kind of an item; its type may be `CommandExecution`, `commandExecution` or `command_execution`.
pub(super) fn kind_of(spelled: &str) -> Kind {
    let plain: String = spelled.chars().filter(|one| *one != '_').collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        "usermessage" => Kind::UserMessage,
        "agentmessage" | "assistantmessage" => Kind::AgentMessage,
        "reasoning" => Kind::Reasoning,
        "commandexecution" => Kind::Tool(Tool::Command),
        "filechange" => Kind::Tool(Tool::FileChange),
        "mcptoolcall" => Kind::Tool(Tool::Mcp),
        "dynamictoolcall" => Kind::Tool(Tool::Dynamic),
        "collabagenttoolcall" | "collabtoolcall" => Kind::Tool(Tool::Collab),
        "websearch" => Kind::Tool(Tool::WebSearch),
        "imageview" => Kind::Tool(Tool::ImageView),
        "imagegeneration" => Kind::Tool(Tool::ImageGeneration),
        "sleep" => Kind::Tool(Tool::Sleep),
        "functioncalloutput" => Kind::Tool(Tool::Output),
        "contextcompaction" => Kind::Compaction,
        "subagentactivity" => Kind::SubagentActivity,
        "plan" | "todolist" => Kind::Fact("plan"),
        "hookprompt" => Kind::Fact("hook_prompt"),
        "enteredreviewmode" => Kind::Fact("entered_review_mode"),
        "exitedreviewmode" => Kind::Fact("exited_review_mode"),
        "codereview" => Kind::Fact("code_review"),
        "error" => Kind::Warning,
        _ => Kind::Unknown,
    }
}

/// Returns the call that a tool's item reports.
pub(super) fn call_of(item: &Item<'_>, tool: Tool) -> CallReport {
    let (name, class) = name_of(item, tool);
    let input = match tool {
        Tool::Mcp | Tool::Dynamic => item.arguments.map_or_else(RawJson::null, RawJson::from_raw),
        Tool::Command => fields(&[("command", item.command), ("cwd", item.cwd)]),
        Tool::FileChange => fields(&[("changes", item.changes)]),
        Tool::Collab => fields(&[("prompt", item.prompt), ("receiver_thread_ids", item.receivers())]),
        Tool::WebSearch => fields(&[("query", item.query), ("action", item.action)]),
        Tool::ImageView => fields(&[("path", item.path)]),
        Tool::ImageGeneration => fields(&[("prompt", item.revised_prompt.or(item.revised_prompt_camel))]),
        Tool::Output => RawJson::null(),
        Tool::Sleep => fields(&[("duration_ms", item.duration_ms.or(item.duration_ms_camel))]),
    };
    let mut call = CallReport::new(name.as_str().into(), class, input);
    push(&mut call.extra, "namespace", item.namespace.json());
    if tool == Tool::Output {
        call.extra.push("input_available", RawJson::from(false));
    }
    call
}

fn name_of(item: &Item<'_>, tool: Tool) -> (String, Class) {
    let word = |raw: Raw<'_>| raw.text().unwrap_or_default().into_owned();
    match tool {
        Tool::Command => (type_of(item), Class::Command),
        Tool::FileChange => (type_of(item), Class::FileChange),
        Tool::Mcp => (format!("mcp__{}__{}", word(item.server), word(item.tool)), Class::Mcp),
        Tool::Dynamic => (word(item.tool), Class::Other),
        Tool::Collab => (word(item.tool), Class::Agent),
        Tool::Output => (word(item.name), Class::Other),
        Tool::WebSearch | Tool::ImageView | Tool::ImageGeneration | Tool::Sleep => {
            (type_of(item), Class::Other)
        }
    }
}

fn fields(pairs: &[(&str, Raw<'_>)]) -> RawJson {
    RawJson::object(|object| {
        for (name, value) in pairs {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
    })
}

/// The exit code that Codex gives a command that was not run.
const NOT_RUN: i64 = -1;

/// How a call ended, in Codex's own report, which is separate from the output for the model.
#[derive(Clone)]
pub(super) struct Report {
    /// The output of the tool, if the report has it.
    pub(super) output: Option<RawJson>,
    pub(super) error: Option<JsonString>,
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i64>,
    pub(super) extra: Extra,
}

impl Report {
    /// Makes a report from a status only; an unknown status is kept.
    fn of_status(status: Raw<'_>) -> Self {
        let outcome = outcome_of(status);
        let mut extra = Extra::default();
        push(&mut extra, "status", status.json().filter(|_| outcome == Outcome::Unknown));
        Self { output: None, error: None, outcome, exit_code: None, extra }
    }

    /// Makes the result of a call; a report without an output gets `model_output`, the output for the model.
    pub(super) fn into_answer(self, model_output: RawJson) -> Answer {
        Answer {
            output: self.output.unwrap_or(model_output),
            error: self.error,
            outcome: self.outcome,
            exit_code: self.exit_code,
            extra: self.extra,
        }
    }

    /// Takes over a denial from the output for the model, if the report has only a failure.
    pub(super) fn refined(self, model_answer: &Answer) -> Self {
        let is_denied = model_answer.outcome == Outcome::Denied && self.is_vague();
        if is_denied {
            Self { outcome: Outcome::Denied, error: model_answer.error.clone(), ..self }
        } else {
            self
        }
    }

    /// Returns true if the call may not have run: it failed without an exit code.
    fn is_vague(&self) -> bool {
        let has_run = self.exit_code.is_some_and(|code| code != NOT_RUN);
        matches!(self.outcome, Outcome::Failed | Outcome::Unknown) && !has_run
    }

    /// Marks a call as denied if Codex's text says so.
    fn judged(self, class: Class) -> Self {
        let is_rejected = self.error.as_ref().is_some_and(|error| is_rejection(&error.to_text(), class))
            || self.output.as_ref().is_some_and(|output| rejection_in(output, class).is_some());
        let is_denied = is_rejected && self.is_vague();
        if is_denied { Self { outcome: Outcome::Denied, ..self } } else { self }
    }

    /// Returns the hash of the report.
    pub(super) fn hash(&self) -> u64 {
        let output = self.output.as_ref().map(RawJson::as_str);
        let error = self.error.as_ref().map(JsonString::as_raw);
        hash_of(&(output, error, self.outcome.as_str(), self.exit_code))
    }

    /// Returns true if it only says that the call succeeded.
    pub(super) fn adds_nothing(&self) -> bool {
        let is_well = matches!(self.outcome, Outcome::Ok | Outcome::Unknown);
        is_well && self.exit_code.is_none() && self.output.is_none() && self.error.is_none()
    }

    /// Makes the step that amends a call after its result.
    pub(super) fn into_amendment(self, call: &JsonString) -> StepPayload {
        let result = RawJson::object(|object| {
            object.optional("exit_code", self.exit_code.map(RawJson::from).as_ref(), ObjectWriter::json);
            object.word("outcome", self.outcome.as_str());
            object.optional("output", self.output.as_ref(), ObjectWriter::json);
            object.optional("error", self.error.as_ref(), ObjectWriter::string);
            for (name, value) in self.extra.into_pairs() {
                object.json(&name.to_text(), &value);
            }
        });
        amendment(call, result)
    }
}

/// Reads a status in the spelling of any surface.
fn outcome_of(status: Raw<'_>) -> Outcome {
    match status.text().as_deref() {
        None if status.json().is_none() => Outcome::Ok,
        Some("completed") => Outcome::Ok,
        Some("failed") => Outcome::Failed,
        Some("declined") => Outcome::Denied,
        Some("interrupted") => Outcome::Interrupted,
        Some(_) | None => Outcome::Unknown,
    }
}

/// Returns how the call of a tool's item ended.
pub(super) fn report_of(item: &Item<'_>, tool: Tool) -> Report {
    let mut report = Report::of_status(item.status);
    match tool {
        Tool::Command => {
            report.output = Some(item.output().json().unwrap_or_else(|| string("")));
            report.exit_code = item.exit().number();
        }
        Tool::FileChange => {
            report.output = item.stdout.json();
            report.error = text_in(item.stderr).filter(|_| report.outcome != Outcome::Ok);
            push(&mut report.extra, "changes", item.changes.json());
        }
        Tool::Mcp => {
            report.output = item.result.json();
            report.error = message_of(item.error);
        }
        Tool::Dynamic => {
            report.output = item.content_items.or(item.content_items_camel).json();
            if item.success.is_some_and(|raw| raw.get() == "false") {
                report.outcome = Outcome::Failed;
            }
        }
        Tool::Collab => push(&mut report.extra, "agents_states", item.states().json()),
        Tool::ImageGeneration => {
            report.output = item.result.or(item.saved_path).or(item.saved_path_camel).json();
            report.error = message_of(item.failure);
        }
        Tool::WebSearch => report.output = item.results.json(),
        Tool::Output => {
            report.output = item.raw_output.json();
            report.outcome = Outcome::Unknown;
        }
        Tool::ImageView | Tool::Sleep => {}
    }
    let millis = item.duration_ms.or(item.duration_ms_camel).number();
    push(&mut report.extra, "duration_ms", millis.or_else(|| millis_of(item.duration)).map(RawJson::from));
    // For other tools the status is enough.
    explained(if tool == Tool::Mcp { report.judged(Class::Mcp) } else { report })
}

/// Adds a reason to a call that did not succeed.
fn explained(mut report: Report) -> Report {
    let reason = match (report.outcome, report.exit_code) {
        (Outcome::Failed, Some(code)) => format!("exit code {code}"),
        (Outcome::Failed, None) => "the tool reported an error".to_owned(),
        (Outcome::Denied, _) => "declined".to_owned(),
        (Outcome::Interrupted, _) => "interrupted".to_owned(),
        (Outcome::Ok | Outcome::Unknown, _) => return report,
    };
    report.error = report.error.or_else(|| Some(reason.into()));
    report
}

/// Returns how a call ended, from an event of the versions before items.
pub(super) fn report_of_event(kind: &str, event: &Payload<'_>) -> Option<Report> {
    let mut report = Report::of_status(event.status);
    match kind {
        "exec_command_end" => {
            report.exit_code = event.exit_code.number();
            report.output = Some(event.aggregated_output.json().unwrap_or_else(|| both_streams(event)));
            if event.status.is_none() && report.exit_code.is_some_and(|code| code != 0) {
                report.outcome = Outcome::Failed;
            }
        }
        "patch_apply_end" => {
            report.output = event.stdout.json();
            if event.status.is_none() && !event.success.is_true() {
                report.outcome = Outcome::Failed;
            }
            report.error = text_in(event.stderr).filter(|_| report.outcome != Outcome::Ok);
            push(&mut report.extra, "changes", event.changes.json());
        }
        "mcp_tool_call_end" => mcp_result(&mut report, event.result),
        "dynamic_tool_call_response" => {
            report.output = event.content_items.json();
            report.error = message_of(event.error).filter(|text| !text.is_empty());
            if !event.success.is_true() {
                report.outcome = Outcome::Failed;
            }
        }
        "web_search_end" | "image_generation_end" | "view_image_tool_call" => {
            report.output = event.result.json();
        }
        _ => return None,
    }
    let millis = event.duration_ms.number().or_else(|| millis_of(event.duration));
    push(&mut report.extra, "duration_ms", millis.map(RawJson::from));
    let class = call_of_event(kind, event).class;
    // The output of a command proves nothing, but a refused command took no time.
    let is_told = event.status.is_none() && (class != Class::Command || is_instant(event.duration));
    Some(explained(if is_told { report.judged(class) } else { report }))
}

/// Returns the call of such an event, for a call that was not announced.
pub(super) fn call_of_event(kind: &str, event: &Payload<'_>) -> CallReport {
    match kind {
        "exec_command_begin" | "exec_command_end" => {
            CallReport::new("exec_command".into(), Class::Command, fields(&[("command", event.command)]))
        }
        "patch_apply_begin" | "patch_apply_end" => {
            CallReport::new("apply_patch".into(), Class::FileChange, fields(&[("changes", event.changes)]))
        }
        "mcp_tool_call_begin" | "mcp_tool_call_end" => {
            let invocation: Invocation<'_> = event.invocation.and_then(object).unwrap_or_default();
            let word = |raw: Raw<'_>| raw.text().unwrap_or_default().into_owned();
            let name = format!("mcp__{}__{}", word(invocation.server), word(invocation.tool));
            let input = invocation.arguments.map_or_else(RawJson::null, RawJson::from_raw);
            CallReport::new(name.as_str().into(), Class::Mcp, input)
        }
        "web_search_begin" | "web_search_end" => {
            let input = fields(&[("query", event.query), ("action", event.action)]);
            CallReport::new("web_search".into(), Class::Other, input)
        }
        "dynamic_tool_call_response" => {
            let input = event.arguments.map_or_else(RawJson::null, RawJson::from_raw);
            CallReport::new(event.tool.string().unwrap_or_else(|| "".into()), Class::Other, input)
        }
        "view_image_tool_call" => {
            CallReport::new("view_image".into(), Class::Other, fields(&[("path", event.path)]))
        }
        "image_generation_end" => {
            let input = fields(&[("prompt", event.revised_prompt)]);
            CallReport::new("image_generation".into(), Class::Other, input)
        }
        _ => CallReport::new(kind.into(), Class::Other, RawJson::null()),
    }
}

fn mcp_result(report: &mut Report, result: Raw<'_>) {
    let read = result.and_then(object::<OkOrErr<'_>>).unwrap_or_default();
    if let Some(error) = read.err {
        report.outcome = Outcome::Failed;
        report.output = Some(RawJson::from_raw(error));
        report.error = message_of(Some(error));
        return;
    }
    let is_error = |result: McpResult<'_>| result.is_error.is_true() || result.is_error_snake.is_true();
    if read.ok.and_then(object::<McpResult<'_>>).is_some_and(is_error) {
        report.outcome = Outcome::Failed;
    }
    report.output = read.ok.or(result).json();
}

/// Versions up to 0.3x had separate streams; the order of their lines is not known.
fn both_streams(event: &Payload<'_>) -> RawJson {
    let (out, err) = (event.stdout.text().unwrap_or_default(), event.stderr.text().unwrap_or_default());
    string(&format!("{out}{err}"))
}

fn text_in(raw: Raw<'_>) -> Option<JsonString> {
    raw.string().filter(|text| !text.is_empty())
}

/// Returns the text of a failure: a string, the message of an object, or the JSON of any other value.
pub(super) fn message_of(raw: Raw<'_>) -> Option<JsonString> {
    let message = raw.and_then(object::<Failure<'_>>).and_then(|failure| failure.message.string());
    message.or_else(|| words(raw))
}

fn millis_of(duration: Option<Duration<'_>>) -> Option<i64> {
    let duration = duration?;
    duration.secs.number()?.checked_mul(1000)?.checked_add(duration.nanos.number()? / 1_000_000)
}

fn is_instant(duration: Option<Duration<'_>>) -> bool {
    duration.is_some_and(|duration| duration.secs.number() == Some(0) && duration.nanos.number() == Some(0))
}

/// Returns the thought of an item or a response: its own text or else its summary, one paragraph per part.
pub(super) fn thought(own: Raw<'_>, summary: Raw<'_>) -> JsonString {
    let own = joined(paragraphs(own), "\n\n");
    if own.is_empty() { joined(paragraphs(summary), "\n\n") } else { own }
}

/// Joins texts; a single one keeps its spelling.
pub(super) fn joined(mut texts: Vec<JsonString>, between: &str) -> JsonString {
    if texts.len() == 1 {
        return texts.remove(0);
    }
    let texts: Vec<_> = texts.iter().map(JsonString::to_text).collect();
    texts.join(between).as_str().into()
}

/// Returns the texts of a list of parts; a text that stands alone is one.
pub(super) fn paragraphs(parts: Raw<'_>) -> Vec<JsonString> {
    if let Some(text) = parts.string() {
        return vec![text];
    }
    let parts: Vec<&RawValue> =
        parts.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    parts.into_iter().filter_map(text_of_part).collect()
}

/// Returns the text of a part, which may be nothing else.
pub(super) fn text_of_part(part: &RawValue) -> Option<JsonString> {
    Some(part).string().or_else(|| object::<Part<'_>>(part)?.text.string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_all_surfaces_give_the_same_kind() {
        for spelled in ["CommandExecution", "commandExecution", "command_execution"] {
            assert_eq!(kind_of(spelled), Kind::Tool(Tool::Command), "{spelled}");
        }
        assert_eq!(kind_of("assistant_message"), Kind::AgentMessage);
        assert_eq!(kind_of("holodeck"), Kind::Unknown);
        assert_eq!(kind_of(""), Kind::Unknown);
    }

    #[track_caller]
    fn report(item: &str, want: (&str, Option<&str>, Option<i64>, Option<&str>)) {
        let raw: &RawValue = serde_json::from_str(item).unwrap();
        let item: Item<'_> = object(raw).unwrap();
        let Kind::Tool(tool) = kind_of(&type_of(&item)) else { panic!("no tool") };
        let report = report_of(&item, tool);
        let output = report.output.map(|output| output.to_string());
        let error = report.error.map(|error| error.to_text().into_owned());
        let got = (report.outcome.as_str(), output.as_deref(), report.exit_code, error.as_deref());
        assert_eq!(got, want, "{}", raw.get());
    }

    #[test]
    fn report_has_output_exit_code_and_error() {
        report(
            r#"{"type":"commandExecution","status":"failed","aggregatedOutput":"boom\n","exitCode":3}"#,
            ("failed", Some("\"boom\\n\""), Some(3), Some("exit code 3")),
        );
        report(
            r#"{"type":"command_execution","status":"declined","aggregated_output":null}"#,
            ("denied", Some("\"\""), None, Some("declined")),
        );
        report(
            r#"{"type":"mcpToolCall","status":"failed","result":null,"error":{"message":"no"}}"#,
            ("failed", None, None, Some("no")),
        );
        report(
            r#"{"type":"FileChange","status":"completed","stdout":"ok","stderr":"noise"}"#,
            ("ok", Some("\"ok\""), None, None),
        );
    }

    #[test]
    fn thought_has_its_content_or_else_its_summary() {
        let raw = |text| serde_json::from_str::<&RawValue>(text).ok();
        let summary = raw(r#"[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]"#);
        assert_eq!(thought(raw("null"), summary), "a\n\nb".into());
        assert_eq!(thought(raw(r#"[{"type":"reasoning_text","text":"own"}]"#), summary), "own".into());
        assert_eq!(thought(None, raw(r#"["x",1]"#)), "x".into());
    }
}
