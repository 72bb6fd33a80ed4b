//! A spine read back: the session, its events as an adapter makes them, and what lies beside.

use std::sync::Arc;

use steno_adapters::codex::spine::Unfolding;
use steno_adapters::{Adapter, Sink, Source, codex};
use steno_exports::atif::{
    Family, NoMedia, NoRecords, NothingBeside, Run, Severity, validate as validate_atif,
};
use steno_exports::harbor::{Session, SessionBuilder, Turn};
use steno_library::Numbering;
use steno_model::{Draft, Evidence, ExchangeEvent, Frame, RunId, SpineRecord, ThreadId};
use steno_session::Content;
use steno_spine::{Artifacts, read_archive, read_directory, read_spine};

use super::super::target::{Target, open_archive, open_directory};
use super::super::validate::validate;
use crate::failure::{Failure, cannot};
use crate::runs;
use crate::settings::Settings;

/// A session, and what a task of it is made from.
pub struct TaskSession {
    pub session: Session,
    pub artifacts: Artifacts,
    /// The SHA-256 of each sealed segment.
    pub segments: Vec<String>,
    run: Option<RunId>,
    /// The events, each with the number of the record that it was made of.
    events: Vec<(u64, ExchangeEvent)>,
}

impl TaskSession {
    /// Reads a spine that holds to every rule.
    pub fn read(target: &Target, settings: &Settings) -> Result<Self, Failure> {
        let name = target.name();
        let report = validate(target, settings)?;
        if !report.is_valid() {
            let failure = Failure::nothing(format!("the spine in `{name}` is not valid"));
            return Err(failure.with_hint(format!("`steno spine validate {name}` says why")));
        }
        let thread = report.thread.as_deref().and_then(|thread| ThreadId::parse(thread).ok());
        let thread = thread.ok_or_else(|| Failure::nothing(format!("`{name}` has no records")))?;
        let mut folding = Folding::new(thread);
        let mut each = |record: SpineRecord| folding.record(&record);
        let artifacts = match target {
            Target::Thread(thread) => read_spine(&runs::need_store(settings)?, thread, &mut each)?,
            Target::Directory(path) => read_directory(Arc::new(open_directory(path)?), &mut each)?,
            Target::Archive(path) => {
                let read = read_archive(open_archive(path)?, &mut each);
                read.map_err(|error| cannot("read", path, &error))?
            }
        };
        let segments = report.sealed_sha256().map(str::to_owned).collect();
        Ok(folding.finish(artifacts, segments))
    }

    /// Returns what came before a turn as a trajectory, or why there is none.
    pub fn before(&self, turn: &Turn) -> Result<String, String> {
        if let Some(base) = &self.session.base {
            return Err(format!(
                "what came before goes on from thread {base}, which is not part of the spine"
            ));
        }
        if turn.number == 1 {
            return Err("it begins with the first turn".to_owned());
        }
        let earlier = &self.session.turns[..turn.number as usize - 1];
        let is_earlier = |seq: &u64| *seq < turn.seqs.0;
        if earlier.iter().any(|turn| turn.is_taken_back) || self.session.reverts.iter().any(is_earlier) {
            return Err("turns before it were taken back, and are no part of what came before".to_owned());
        }
        let run = self.run.ok_or("there are no events")?;
        let mut builder = steno_session::SessionBuilder::new(run, Content::Whole);
        for (_, event) in self.events.iter().filter(|(seq, _)| *seq < turn.seqs.0) {
            builder.push(event);
        }
        let family = Family::new([(run, Run::of(builder.finish(), &mut NoRecords))].into());
        let trajectory = family.trajectory(run, &mut NoMedia).ok_or("nothing was said or done before")?;
        let findings = validate_atif(&trajectory.json, &mut NothingBeside);
        match findings.iter().find(|finding| finding.severity == Severity::Error) {
            Some(finding) => Err(format!("it would not be a valid trajectory: {finding}")),
            None => Ok(self.without_credentials(trajectory.json)),
        }
    }
}

impl TaskSession {
    /// Takes a name and a password out of the repository's address: a task is handed on.
    fn without_credentials(&self, text: String) -> String {
        let repository = &self.session.repository;
        match (&repository.url, repository.public_url()) {
            (Some(url), Some(public)) if *url != public => text.replace(url.as_str(), &public),
            _ => text,
        }
    }
}

/// Puts a session together while its records are read.
struct Folding {
    builder: SessionBuilder,
    unfolding: Unfolding,
    adapter: Option<Adapter>,
    made: NumberedDrafts,
    /// Where the line of each record begins in what the adapter is given.
    lines: Vec<(u64, u64)>,
    offset: u64,
    last_seq: u64,
    records: Vec<Event>,
}

/// An event with the number of its record.
type Event = (u64, ExchangeEvent);

impl Folding {
    fn new(thread: ThreadId) -> Self {
        Self {
            builder: SessionBuilder::new(thread),
            unfolding: Unfolding::new(),
            adapter: None,
            made: NumberedDrafts::default(),
            lines: Vec::new(),
            offset: 0,
            last_seq: 0,
            records: Vec::new(),
        }
    }

    fn record(&mut self, record: &SpineRecord) {
        self.last_seq = record.seq.get();
        self.builder.record(record);
        let Some(mut line) = self.unfolding.line(record) else { return };
        let is_conversation = line.starts_with("{\"dir\"");
        line.push('\n');
        let adapter = self.adapter.get_or_insert_with(|| {
            let source = Source::named("spine");
            if is_conversation { codex::app_server(source).of_conversation() } else { codex::rollout(source) }
        });
        self.lines.push((self.offset, self.last_seq));
        adapter.feed(Frame::of_file(self.offset, line.as_bytes()), &mut self.made);
        self.offset += line.len() as u64;
        self.take();
    }

    /// Hands on the events that were made.
    fn take(&mut self) {
        for event in std::mem::take(&mut self.made.events) {
            let evidence = event.extra.get("evidence").and_then(Evidence::read);
            let offset = evidence.map_or(self.offset, |evidence| evidence.position.offset);
            let after = self.lines.partition_point(|(begin, _)| *begin <= offset);
            let seq = after.checked_sub(1).and_then(|at| self.lines.get(at)).map_or(0, |(_, seq)| *seq);
            self.builder.event(&event, seq);
            self.records.push((seq, event));
        }
    }

    fn finish(mut self, artifacts: Artifacts, segments: Vec<String>) -> TaskSession {
        if let Some(mut adapter) = self.adapter.take() {
            adapter.finish(&mut self.made);
            self.take();
        }
        let (session, run) = self.builder.finish(self.last_seq);
        TaskSession { session, artifacts, segments, run, events: self.records }
    }
}

/// Numbers what an adapter makes.
#[derive(Default)]
struct NumberedDrafts {
    events: Vec<ExchangeEvent>,
    numbering: Numbering,
}

impl Sink for NumberedDrafts {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.events.push(self.numbering.event(run, draft));
    }
}
