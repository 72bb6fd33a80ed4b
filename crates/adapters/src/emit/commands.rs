//! Writes the beginning and the end of commands that we started.

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::wrap::ProcessEnd;
use steno_model::{EntryType, EventType, Payload, StepPayload};

use super::{Emit, push};
use crate::run::Run;

/// The kind of a plain command's run and of its only step, and the path of the step.
const COMMAND: &str = "command";

impl Emit<'_> {
    /// Begins the run of a plain command, and its step.
    pub(crate) fn begin_command(&mut self, run: &mut Run, name: &JsonString, cwd: Option<&JsonString>) {
        run.is_started = true;
        let mut payload = StepPayload { name: name.clone(), ..StepPayload::new("", COMMAND) };
        push(&mut payload.extra, "cwd", cwd.map(JsonString::to_json));
        payload.extra.push("source", self.source(None));
        if let Some(wrapped) = self.memory.wrapped.take() {
            payload.extra.push("wrap", wrapped.fields);
        }
        self.put(run, (EventType::RunStarted, &"".into()), &Payload::Step(payload), None);
        let payload = StepPayload { name: name.clone(), ..StepPayload::new("", COMMAND) };
        self.put(run, (EventType::StepStarted, &COMMAND.into()), &Payload::Step(payload), None);
        self.entry(run, EntryType::SystemEvent, Some("command_started"));
    }

    /// Ends the step of a plain command.
    pub(crate) fn end_command(&mut self, run: &Run, name: &JsonString, end: ProcessEnd, result: RawJson) {
        let error = match end {
            ProcessEnd::Code(0) => None,
            ProcessEnd::Code(code) => Some(format!("exit code {code}").into()),
            ProcessEnd::Signal(signal) => Some(format!("signal {signal}").into()),
        };
        let kind = COMMAND.into();
        self.entry_with(run, EntryType::SystemEvent, Some("command_completed"), result.as_str());
        let payload =
            StepPayload { name: name.clone(), kind, error, result: Some(result), extra: Extra::default() };
        self.step_completed(run, &COMMAND.into(), payload);
    }

    /// Ends the run of a plain command.
    pub(crate) fn complete_command(&mut self, run: &Run, name: &JsonString, extra: Extra) {
        let payload = StepPayload { name: name.clone(), extra, ..StepPayload::new("", COMMAND) };
        self.put(run, (EventType::RunCompleted, &"".into()), &Payload::Step(payload), None);
    }
}
