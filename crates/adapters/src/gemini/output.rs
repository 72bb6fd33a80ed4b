//! `--output-format json`: one document at the end of a process, perhaps after other text.

use steno_model::json::{Extra, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity};

use super::stream::{end_turn, message_of};
use super::usage::{Scope, main_tokens, process_tokens, push_usage};
use super::wire::OutputDocument;
use super::{CHANNEL, PROVIDER};
use crate::adapter::{Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::pending::{PendingKind, PendingRecords};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::shapes::elements;
use crate::wire::{NoObject, RawField as _, WireObject as _, parse};

static ABOUT: AdapterInfo =
    AdapterInfo { channel: "output", carries: &["usage"], detail_name: "output", ..CHANNEL };

/// The output of a process, or of several one after the other.
pub(super) struct Output {
    source: String,
    run: Option<Run>,
    /// How many documents there were.
    documents: u32,
    waiting: PendingRecords,
}

impl Output {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source: source.id.to_text().into_owned(),
            run: None,
            documents: 0,
            waiting: PendingRecords::default(),
        }
    }

    /// Begins the run of a document's session, unless it is the current run.
    fn open(&mut self, session: &str, emit: &mut Emit<'_>) {
        if self.run.as_ref().is_some_and(|run| run.session.as_deref().unwrap_or_default() == session) {
            return;
        }
        let number = self.documents.to_string();
        let mut key = vec![PROVIDER, "output", &self.source, session];
        if self.run.is_some() {
            key.push(&number);
        }
        let mut run = Run::main(derived_run_id(&key));
        if !session.is_empty() {
            run.mirrors = Some(run_id_of(PROVIDER, session));
            run = run.of_session(session);
        }
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| {
                emit.begin(&mut run, None, Extra::default());
                emit.unknown(&run, "unreadable", Some("no JSON object"));
                emit.entry(&run, EntryType::Unknown, None);
            });
        }
        emit.begin(&mut run, None, Extra::default());
        self.run = Some(run);
    }

    fn document(&mut self, document: &OutputDocument<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        self.documents += 1;
        self.open(&document.session_id.text().unwrap_or_default(), emit);
        let Some(run) = &mut self.run else { return RecordOutcome::Waiting };
        let is_output = document.response.is_some() || document.stats.is_some() || document.error.is_some();
        if !is_output {
            return unknown(run, emit);
        }
        emit.begin_turn(run, None, None);
        if let Some(text) = document.response.string().filter(|text| !text.is_empty()) {
            let block = ContentBlock::text(Fidelity::AgentEmitted, text);
            emit.assistant(run, vec![block], Extra::default());
            emit.entry(run, EntryType::AssistantMessage, None);
        }
        for warning in elements(document.warnings).unwrap_or_default() {
            emit.system(run, "warning", Some(RawJson::from_raw(warning)));
            emit.entry(run, EntryType::SystemEvent, Some("warning"));
        }
        stats(run, document, emit);
        let error = document.error.as_ref().map(|error| message_of(error).unwrap_or_else(|| "failed".into()));
        end_turn(run, error, emit);
        if document.is_odd() { unknown(run, emit) } else { RecordOutcome::Understood }
    }
}

/// Writes the sums of the process: usage by model, and what its tools did.
fn stats(run: &Run, document: &OutputDocument<'_>, emit: &mut Emit<'_>) {
    let Some(stats) = &document.stats else { return };
    let of_main = main_tokens(stats.models).map(|used| (used, Scope::Turn));
    let of_all = process_tokens(stats.models).map(|used| (used, Scope::Process));
    if of_main.is_some() || of_all.is_some() {
        emit.entry(run, EntryType::TokenUsage, None);
    }
    for (used, scope) in [of_main, of_all].into_iter().flatten() {
        let mut extra = Extra::default();
        push(&mut extra, "model", used.model);
        push_usage(&mut extra, used.tokens, scope);
        emit.assistant(run, Vec::new(), extra);
    }
    for (name, value) in [("tools", stats.tools), ("files", stats.files)] {
        if let Some(value) = value.json() {
            emit.system(run, name, Some(value));
            emit.entry(run, EntryType::SystemEvent, Some(name));
        }
    }
}

fn unknown(run: &Run, emit: &mut Emit<'_>) -> RecordOutcome {
    emit.unknown(run, "output", None);
    emit.entry(run, EntryType::Unknown, None);
    RecordOutcome::Unknown("output".to_owned())
}

impl Mapper for Output {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let document: OutputDocument<'_> = parse(record.text)?;
        // The document has no time.
        emit.set_time_or_captured(None);
        if emit.is_known(None) {
            return Ok(RecordOutcome::Understood);
        }
        Ok(self.document(&document, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if let Some(run) = &self.run {
            emit.unknown(run, "unreadable", Some(why));
            emit.entry(run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open("", emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.run.is_none() && !self.waiting.is_empty() {
            self.open("", emit);
        }
    }
}
