//! Writes all other facts as steps.

use steno_model::json::{JsonString, RawJson};
use steno_model::{EventType, Payload, StepPayload};

use super::Emit;
use crate::run::Run;

impl Emit<'_> {
    /// Writes the beginning of a step inside the turn.
    pub(crate) fn step_started(&mut self, run: &Run, path: &JsonString, payload: StepPayload) {
        self.put(run, (EventType::StepStarted, path), &Payload::Step(payload), None);
    }

    /// Writes a step that has ended, or a fact that took no time.
    pub(crate) fn step_completed(&mut self, run: &Run, path: &JsonString, payload: StepPayload) {
        self.put(run, (EventType::StepCompleted, path), &Payload::Step(payload), None);
    }

    /// Writes a fact of kind `system` in the turn.
    pub(crate) fn system(&mut self, run: &Run, name: &str, result: Option<RawJson>) {
        let payload = StepPayload { result, ..StepPayload::new(name, "system") };
        self.step_completed(run, &run.turns.path(), payload);
    }

    /// Writes an error that is not the result of a call.
    pub(crate) fn error(&mut self, run: &Run, name: &str, error: &str) {
        let payload = StepPayload { error: Some(error.into()), ..StepPayload::new(name, "error") };
        self.step_completed(run, &run.turns.path(), payload);
    }

    /// Writes that a record is of a type that nobody knows, or cannot be read; its bytes are in the evidence.
    pub(crate) fn unknown(&mut self, run: &Run, name: &str, why: Option<&str>) {
        let mut payload = StepPayload::new(name, "unknown");
        payload.error = why.map(JsonString::from);
        self.step_completed(run, &run.turns.path(), payload);
    }
}
