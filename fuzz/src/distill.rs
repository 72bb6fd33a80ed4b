//! Checks for any session file: it becomes a spine and back, and its tasks are complete, deterministic and in the right
//! place.

use std::collections::BTreeSet;

use steno_adapters::codex::spine::{RolloutFold, SpineUnfolder};
use steno_adapters::{Sink, Source, codex};
use steno_exports::harbor::{Concern, Plan, SessionBuilder, Span, TaskFile, TaskInputs, Wish};
use steno_model::{Draft, ExchangeEvent, Frame, RunId, Seq, SpineRecord, ThreadId, Timestamp};

/// How many turns of a session are tried.
const TURNS_MAX: usize = 8;

/// Checks the tasks of any session file.
///
/// # Panics
/// If a check fails.
pub fn check_tasks(input: &[u8]) {
    let mut fold = RolloutFold::new();
    let (mut made, mut offset) = (Vec::new(), 0);
    for line in input.split(|byte| *byte == b'\n') {
        made.extend(fold.line(offset, line));
        offset += line.len() as u64 + 1;
    }
    let Some(thread) = fold.thread().cloned() else { return };
    let mut builder = SessionBuilder::new(thread.clone());
    let mut unfolding = SpineUnfolder::new();
    let mut adapter = codex::rollout(Source::named("spine"));
    let mut events = Events::default();
    let (mut seq, mut at) = (Seq::FIRST, 0);
    for made in &made {
        let text = format!(
            r#"{{"schema_version":"codex_trace_spine_v1","thread_id":"{thread}","seq":{seq},"timestamp":{},"type":"{}","payload":{}}}"#,
            made.timestamp.as_json().as_raw(),
            made.record_type,
            made.payload.as_str()
        );
        let record = SpineRecord::parse(text.as_bytes()).expect("what a fold makes is a record");
        builder.record(&record);
        if let Some(line) = unfolding.line(&record) {
            let line = line + "\n";
            adapter.feed(Frame::of_file(at, line.as_bytes()), &mut events);
            at += line.len() as u64;
        }
        for event in events.0.drain(..) {
            builder.event(event, seq.get());
        }
        seq = seq.next();
    }
    let session = builder.finish();
    let wish = Wish { allowed: BTreeSet::from(Concern::ALL), has_repository: true, ..Wish::default() };
    for turn in session.turns.iter().take(TURNS_MAX) {
        let span = Span::Turns(turn.number, turn.number);
        let write = || {
            Some(Plan::make(&session, span, wish.clone()).ok()?.files(&given()).expect("all of it is given"))
        };
        let files = write();
        assert_eq!(files, write(), "the same session gives other bytes");
        check_files(&files.unwrap_or_default(), &thread);
    }
}

fn given() -> TaskInputs<'static> {
    let before = Err("nobody has asked".to_owned());
    TaskInputs {
        artifact: &|_| Some(b"patch".to_vec()),
        snapshot: Some(Vec::new()),
        before,
        segments: Vec::new(),
    }
}

fn check_files(files: &[TaskFile], thread: &ThreadId) {
    assert!(files.is_sorted_by(|one, next| one.path < next.path), "two files of one name");
    for file in files {
        let is_odd = |part: &str| matches!(part, "" | "." | "..");
        assert!(!file.path.split('/').any(is_odd), "{}", file.path);
        match file.path.as_str() {
            "environment/Dockerfile" => check_dockerfile(&file.bytes),
            "task.toml" => {
                let text = std::str::from_utf8(&file.bytes).expect("it is text");
                let toml: toml::Table = toml::from_str(text).expect("it is TOML");
                assert_eq!(toml["metadata"]["steno"]["thread"].as_str(), Some(thread.as_str()));
            }
            _ => {}
        }
    }
}

/// Makes no separate steps.
fn check_dockerfile(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("it is text");
    for line in text.lines() {
        let known = [
            "# The record",
            "FROM debian",
            "RUN command -v git",
            "WORKDIR /",
            "ADD repo.tar",
            "RUN git init",
        ];
        let patch = ["COPY start.patch", "COPY before .steno-before", "RUN git apply", "RUN for patch in"];
        assert!(known.iter().chain(&patch).any(|begin| line.starts_with(begin)), "{line}");
    }
}

/// Numbers the events of an adapter.
#[derive(Default)]
struct Events(Vec<ExchangeEvent>);

impl Sink for Events {
    fn draft(&mut self, run: RunId, draft: Draft) {
        let epoch = || Timestamp::from_unix_ms(0).expect("a time");
        self.0.push(draft.into_event(run, Seq::FIRST, epoch));
    }
}
