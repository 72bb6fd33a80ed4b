//! A rollout's calls: the model's call, Codex's report of its end, and the output that the model got.

use steno_model::EntryType;
use steno_model::json::{Extra, JsonString, RawJson};

use super::agents::End;
use super::session::{Session, use_block};
use super::waits::{CallEnd, PendingReport, Wait};
use crate::emit::{Answer, CallReport, Emit, push};
use crate::repeats::{amendment, hash_of, hash_of_call};

/// The tool that runs the model's scripts (code mode), the one that waits for them, and how the ids of their calls begin.
const SCRIPT: &str = "exec";
const WAIT: &str = "wait";
const SCRIPT_CALL: &str = "exec-";

/// What is recorded about a call so far, as hashes: a record that repeats it adds nothing.
#[derive(Default)]
pub(super) struct CallHashes {
    call: Option<u64>,
    output: Option<u64>,
    report: Option<u64>,
    /// Whether its result has no output.
    is_silent: bool,
}

impl Session {
    /// Takes a call of the model; false if another call has its id.
    pub(super) fn call(
        &mut self,
        id: &JsonString,
        call: CallReport,
        item: Option<RawJson>,
        emit: &mut Emit<'_>,
    ) -> bool {
        self.open_turn(emit);
        let hash = hash_of_call(&call);
        let hashes = self.call_hashes.entry(id.to_text().into_owned()).or_default();
        if let Some(known) = hashes.call {
            return known == hash;
        }
        hashes.call = Some(hash);
        if call.name.is(SCRIPT) {
            self.script = Some(id.clone());
        }
        match self.run.calls.get(&id.to_text()).map(|call| call.path.clone()) {
            // It was inferred from an earlier record.
            Some(path) => {
                let result = RawJson::object(|object| {
                    object.string("name", &call.name);
                    object.json("input", &call.input);
                });
                emit.step_completed(&self.run, &path, amendment(id, result));
            }
            None => self.write_call(id, call, item, emit),
        }
        true
    }

    /// Writes a call: a block of the response, and the call itself.
    fn write_call(&mut self, id: &JsonString, call: CallReport, item: Option<RawJson>, emit: &mut Emit<'_>) {
        let mut extra = Extra::default();
        push(&mut extra, "id", item);
        self.say(vec![use_block(id, &call)], extra, EntryType::ToolUse, emit);
        emit.call(&mut self.run, id, call);
    }

    /// Takes the end of a call: its result or an amendment. A report without output waits for the next record, which
    /// may have it.
    pub(super) fn report(&mut self, ended: CallEnd, emit: &mut Emit<'_>) {
        let key = ended.id.to_text().into_owned();
        let hash = ended.report.hash();
        let is_repeated = self.call_hashes.entry(key.clone()).or_default().report.replace(hash) == Some(hash);
        match self.run.calls.get(&key).map(|call| (call.is_answered, call.path.clone())) {
            // A report without new information amends nothing.
            Some((true, path)) => {
                if !is_repeated && !ended.report.adds_nothing() {
                    let amendment = ended.report.clone().into_amendment(&ended.id);
                    emit.step_completed(&self.run, &path, amendment);
                }
                self.link(ended.made, &ended.id, ended.done, emit);
            }
            Some((false, _)) if ended.report.output.is_none() => {
                let wait = Wait::new(self.copied_from, emit);
                self.awaited = Some(PendingReport { report: ended, wait });
                self.is_quiet = true;
            }
            Some((false, _)) => self.write_report(ended, emit),
            // A command of the user, or a call of the model's script: it is in no response.
            None => {
                let CallEnd { id, report, mut call, made, done } = ended;
                push(&mut call.extra, "parent_call_id", self.script_of(&id).map(|script| script.to_json()));
                self.write_call(&id, call, None, emit);
                self.answer(&id, report.into_answer(RawJson::null()), emit);
                self.link(made, &id, done, emit);
            }
        }
    }

    /// Returns the script that made a call: one that runs, or that the model waits for. A script's calls have ids of their
    /// own.
    fn script_of(&self, id: &JsonString) -> Option<JsonString> {
        if !id.to_text().starts_with(SCRIPT_CALL) {
            return None;
        }
        let running = self.run.calls.last_open(|call| call.name.is(SCRIPT));
        let is_waiting = || self.run.calls.last_open(|call| call.name.is(WAIT)).is_some();
        running.map(|id| id.as_str().into()).or_else(|| self.script.clone().filter(|_| is_waiting()))
    }

    fn write_report(&mut self, ended: CallEnd, emit: &mut Emit<'_>) {
        self.link(ended.made, &ended.id, ended.done, emit);
        self.answer(&ended.id, ended.report.into_answer(RawJson::null()), emit);
    }

    /// Writes which subagents a call created and which it saw end.
    fn link(&mut self, made: Vec<String>, id: &JsonString, done: Vec<(String, End)>, emit: &mut Emit<'_>) {
        for thread in made {
            self.begin_child(&thread, Some(&id.to_text()), emit);
        }
        self.end_children(done, emit);
    }

    /// Writes a report whose output did not come.
    pub(super) fn write_awaited(&mut self, emit: &mut Emit<'_>) {
        if let Some(PendingReport { report, mut wait }) = self.awaited.take() {
            self.overtake();
            wait.write(emit, |emit| self.write_report(report, emit));
        }
    }

    /// Writes the subagents of a report whose output is in the current record.
    pub(super) fn link_awaited(&mut self, emit: &mut Emit<'_>) {
        let Some(mut awaited) = self.awaited.take() else { return };
        let made = std::mem::take(&mut awaited.report.made);
        let done = std::mem::take(&mut awaited.report.done);
        if !(made.is_empty() && done.is_empty()) {
            self.overtake();
            awaited.wait.write(emit, |emit| self.link(made, &awaited.report.id, done, emit));
        }
        self.awaited = Some(awaited);
    }

    /// Takes the output that the model got; false if it got a different one before.
    pub(super) fn take_output(&mut self, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) -> bool {
        self.open_turn(emit);
        let key = id.to_text();
        let hashes = self.call_hashes.entry(key.clone().into_owned()).or_default();
        let hash = hash_of(answer.output.as_str());
        if let Some(known) = hashes.output {
            return known == hash;
        }
        hashes.output = Some(hash);
        let is_news = hashes.is_silent && answer.output != RawJson::null();
        let call = self.run.calls.get(&key).filter(|call| call.is_answered);
        if let Some(path) = call.map(|call| call.path.clone()) {
            if is_news {
                let result = RawJson::object(|object| object.json("output", &answer.output));
                emit.step_completed(&self.run, &path, amendment(id, result));
            }
            return true;
        }
        let answer = match self.awaited.take() {
            Some(awaited) => awaited.report.report.refined(&answer).into_answer(answer.output),
            None => answer,
        };
        self.answer(id, answer, emit);
        true
    }

    fn answer(&mut self, id: &JsonString, answer: Answer, emit: &mut Emit<'_>) {
        self.call_hashes.entry(id.to_text().into_owned()).or_default().is_silent =
            answer.output == RawJson::null();
        self.overtake();
        emit.result(&mut self.run, id, "", answer);
        emit.entry(&self.run, EntryType::ToolResult, None);
    }
}
