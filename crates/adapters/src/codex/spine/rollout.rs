//! Makes a spine of a session file of Codex. `docs/adapters/codex-spine.md` has the mapping of each line.

use std::str::from_utf8;

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, RawJson};
use steno_model::{Position, SpineSource, SpineType, ThreadId, Timestamp};

use super::payload::{self, Boundary, raw};
use super::turns::{Turn, Turns};
use super::{History, SpineMade};
use crate::codex::wire::{CompactionRecord, HistoryBase, Payload, RawLine, RetainedItem, SessionMeta};
use crate::wire::{RawField as _, object, parse};

/// Items that are in a history only after a compaction by the provider.
const REMOTE_ITEMS: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];

/// The file of another thread whose beginning is the history of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The other thread.
    pub thread: String,
    /// How many bytes of its file belong to the history; `None` means all.
    pub bytes: Option<u64>,
}

/// Folds the lines of a rollout, beginning with the first.
#[derive(Debug, Default)]
pub struct RolloutFold {
    thread: Option<ThreadId>,
    /// The path of the file.
    path: Option<String>,
    turns: Turns,
    history: History,
    base: Option<Base>,
    /// Lines with a smaller ordinal were copied from another thread.
    own_from: i64,
    /// The thread that they were copied from.
    copied_from: Option<String>,
    time: Option<Timestamp>,
    made: Vec<SpineMade>,
    /// Offset and length of the current line.
    at: (u64, u64),
}

impl RolloutFold {
    /// Creates a fold for a file whose path is not recorded.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a fold for a file. The spine records its path.
    #[must_use]
    pub fn of_file(path: String) -> Self {
        Self { path: Some(path), ..Self::default() }
    }

    /// Returns the thread, after the line that names it was read.
    #[must_use]
    pub fn thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// Returns the file that this session continues, if it does. The caller folds that file and passes its history to
    /// [`RolloutFold::give_base`].
    #[must_use]
    pub fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// Sets the history that this file continues.
    pub fn give_base(&mut self, history: History) {
        self.history = history;
    }

    /// Returns the history after the lines read so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Takes a line without its newline. Returns its record, and the records derived from it.
    pub fn line(&mut self, offset: u64, line: &[u8]) -> Vec<SpineMade> {
        self.at = (offset, line.len() as u64);
        match from_utf8(line).ok().and_then(|text| Some((text, parse::<RawLine<'_>>(text).ok()?))) {
            Some((text, line)) => self.read(text, &line),
            None => self.unreadable(line),
        }
        std::mem::take(&mut self.made)
    }

    fn read(&mut self, text: &str, line: &RawLine<'_>) {
        if let Some(time) = line.timestamp.text().and_then(|text| Timestamp::parse(&text).ok()) {
            self.time = Some(time);
        }
        let kind = line.kind.text().unwrap_or_default();
        match (line.payload.map(RawValue::get), &*kind) {
            (Some(payload), "session_meta") => self.session_meta(payload),
            // Files of the first versions have no envelope: the first line is the head, the others are bare items.
            (None, "") if self.thread.is_none() => self.session_meta(text),
            (None, "") => self.event(&Turn::default(), &payload::wrapped("record_type", &raw(text))),
            (None, _) => self.response_item(text),
            (Some(payload), kind) => self.envelope(kind, payload, line.ordinal.number()),
        }
    }

    fn envelope(&mut self, kind: &str, payload: &str, ordinal: Option<i64>) {
        if self.copied_from.is_some() && ordinal.is_some_and(|ordinal| ordinal < self.own_from) {
            return self.copied(kind, payload);
        }
        let fields: Payload<'_> = parse(payload).unwrap_or_default();
        match kind {
            "turn_context" => {
                let turn = self.turns.of(fields.turn_id.text().as_deref());
                self.make(SpineType::TurnContext, payload::turn_context(&turn, &raw(payload)));
            }
            "event_msg" => self.event_msg(&fields, payload),
            "response_item" => self.response_item(payload),
            "compacted" => self.compacted(payload),
            other => {
                let turn = self.turns.of(fields.turn_id.text().as_deref());
                self.event(&turn, &payload::wrapped(other, &raw(payload)));
            }
        }
    }

    fn session_meta(&mut self, meta: &str) {
        let fields: SessionMeta<'_> = parse(meta).unwrap_or_default();
        let id = fields.id.text().unwrap_or_default();
        if self.thread.as_ref().is_some_and(|thread| thread.as_str() != id) {
            // The head of another thread, copied into this file.
            let msg = payload::wrapped("session_meta", &raw(meta));
            return self.make(SpineType::Event, payload::event(&Turn::default(), &msg, Some(&id)));
        }
        let is_first = self.thread.is_none();
        self.thread = ThreadId::parse(&id).ok();
        if is_first {
            self.begin(&fields);
        }
        let base = fields.history_base.json();
        let path = self.path.as_deref();
        let origin = payload::Origin { source: SpineSource::Rollout, base: base.as_ref(), path };
        let payload = payload::session_meta(meta, origin);
        self.make(SpineType::SessionMeta, payload);
        if let Some(git) = fields.git.json() {
            let cwd = fields.cwd.string();
            self.make(SpineType::ArtifactRef, payload::git_info(cwd.as_ref(), &git));
        }
    }

    /// Reads from the head where the thread's own lines and its history begin.
    fn begin(&mut self, meta: &SessionMeta<'_>) {
        let base: HistoryBase<'_> = meta.history_base.and_then(object).unwrap_or_default();
        if let Some(thread) = base.thread_id.text() {
            let bytes = base.end_byte_offset.number().and_then(|bytes| u64::try_from(bytes).ok());
            self.history.lacks(format!("it goes on from thread {thread}, which was not read"));
            self.base = Some(Base { thread: thread.into_owned(), bytes });
        }
        if let Some(own_from) = meta.history_start_ordinal.number() {
            self.own_from = own_from;
            let parent = meta.forked_from_id.text().or_else(|| meta.parent_thread_id.text());
            self.copied_from = Some(parent.map(std::borrow::Cow::into_owned).unwrap_or_default());
        }
    }

    /// Takes a line that was copied from another thread. It is history, not something that happened in this session.
    fn copied(&mut self, kind: &str, payload: &str) {
        let msg = match kind {
            "response_item" => {
                push(&mut self.history, payload);
                payload::response_item(&raw(payload))
            }
            "event_msg" => raw(payload),
            other => payload::wrapped(other, &raw(payload)),
        };
        let turn = parse::<Payload<'_>>(payload).ok().and_then(|fields| fields.turn_id.text());
        let turn = turn.map(std::borrow::Cow::into_owned);
        let turn = Turn { id: turn.unwrap_or_default(), is_inferred: false };
        let payload = payload::event(&turn, &msg, self.copied_from.as_deref());
        self.make(SpineType::Event, payload);
    }

    fn event_msg(&mut self, fields: &Payload<'_>, payload: &str) {
        let before = self.turns.current();
        let thread = self.thread.as_ref().map_or("", ThreadId::as_str).to_owned();
        let turn = self.turns.event(fields, &thread);
        if self.turns.current() != before && self.turns.current() == turn {
            self.history.begin_turn();
        }
        if fields.kind.is("thread_rolled_back") {
            let turns = fields.num_turns.number().and_then(|turns| usize::try_from(turns).ok());
            self.history.roll_back(turns.unwrap_or(0));
        }
        self.event(&turn, &raw(payload));
    }

    fn response_item(&mut self, item: &str) {
        push(&mut self.history, item);
        let fields: Payload<'_> = parse(item).unwrap_or_default();
        let named = fields.passthrough.and_then(|passthrough| passthrough.turn_id.text());
        let turn = self.turns.of(named.as_deref());
        self.event(&turn, &payload::response_item(&raw(item)));
    }

    fn compacted(&mut self, payload: &str) {
        let turn = self.turns.current();
        let fields: CompactionRecord<'_> = parse(payload).unwrap_or_default();
        let history = fields.replacement_history;
        let has_history = history.is_some_and(|history| history.get().starts_with('['));
        let rest = if has_history { without(payload, "replacement_history") } else { raw(payload) };
        self.event(&turn, &payload::wrapped("compacted", &rest));
        if !has_history {
            // A boundary needs both histories, and the one after the compaction is not known.
            return;
        }
        let items: Vec<&RawValue> =
            history.and_then(|history| serde_json::from_str(history.get()).ok()).unwrap_or_default();
        let is_remote = items.iter().any(|item| {
            let kind = object::<RetainedItem<'_>>(item).and_then(|item| item.kind.text());
            kind.is_some_and(|kind| REMOTE_ITEMS.contains(&&*kind))
        });
        let before = self.history.clone();
        self.history.replace(&items);
        let summary = fields.message.string().filter(|message| !message.is_empty());
        let boundary = Boundary { turn: &turn, is_remote, summary, before: &before, after: &self.history };
        let payload = boundary.payload();
        self.make(SpineType::CompactionBoundary, payload);
    }

    fn unreadable(&mut self, line: &[u8]) {
        let msg = payload::unreadable(line);
        self.event(&self.turns.current(), &msg);
    }

    fn event(&mut self, turn: &Turn, msg: &RawJson) {
        self.make(SpineType::Event, payload::event(turn, msg, None));
    }

    fn make(&mut self, record_type: SpineType, payload: RawJson) {
        // In files of the first versions only the head has a time.
        let Some(timestamp) = self.time.clone().or_else(|| Timestamp::from_unix_ms(0)) else { return };
        let (offset, length) = self.at;
        let part = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        let position = Position { generation: 0, offset, part };
        self.made.push(SpineMade { record_type, timestamp, payload, position, length });
    }
}

fn push(history: &mut History, item: &str) {
    if let Ok(item) = serde_json::from_str::<&RawValue>(item) {
        history.push(item);
    }
}

/// Returns an object without one of its fields.
pub(super) fn without(object: &str, name: &str) -> RawJson {
    let Ok(fields) = Fields::parse(object) else { return RawJson::null() };
    let rest = fields.iter().filter(|(key, _)| !key.is(name));
    let rest = rest.map(|(key, value)| (JsonString::from_text(&key.text()), RawJson::from_raw(value)));
    payload::object_of(rest.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds lines, and returns each record as its type and payload.
    fn fold(fold: &mut RolloutFold, lines: &[&str]) -> Vec<(SpineType, String)> {
        let mut offset = 0;
        let mut made = Vec::new();
        for line in lines {
            made.extend(fold.line(offset, line.as_bytes()));
            offset += line.len() as u64 + 1;
        }
        made.into_iter().map(|made| (made.record_type, made.payload.as_str().to_owned())).collect()
    }

    const META: &str = r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","git":{"commit_hash":"c0","n":1e400}}}"#;
    const START: &str = r#"{"timestamp":"2026-05-01T10:00:01.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"u1"}}"#;

    fn item(text: &str) -> String {
        format!(
            r#"{{"timestamp":"2026-05-01T10:00:02.000Z","type":"response_item","payload":{{"type":"message","text":"{text}"}}}}"#
        )
    }

    #[test]
    fn every_line_is_a_record_with_its_original_text() {
        let odd = r#"{"timestamp":"2026-05-01T10:00:03.000Z","type":"hologram","payload":{"a":1,"a":18446744073709551616}}"#;
        let records = fold(&mut RolloutFold::new(), &[META, START, odd, "{torn", "5"]);
        let types: Vec<_> = records.iter().map(|(record_type, _)| *record_type).collect();
        assert_eq!(
            types,
            [
                SpineType::SessionMeta,
                SpineType::ArtifactRef,
                SpineType::Event,
                SpineType::Event,
                SpineType::Event,
                SpineType::Event
            ]
        );
        assert!(records[0].1.starts_with(r#"{"id":"t1","cwd":"/w","git":{"commit_hash":"c0","n":1e400},"spine_source":{"kind":"rollout","adapter":"spine/1","cannot_carry":["submissions and their answers","#));
        assert_eq!(
            records[1].1,
            r#"{"kind":"git_info","repo_root":"/w","repo_root_is_cwd":true,"git":{"commit_hash":"c0","n":1e400}}"#
        );
        assert_eq!(records[2].1, r#"{"id":"u1","msg":{"type":"task_started","turn_id":"u1"}}"#);
        assert_eq!(
            records[3].1,
            r#"{"id":"u1","msg":{"type":"hologram","payload":{"a":1,"a":18446744073709551616}}}"#
        );
        assert_eq!(records[4].1, r#"{"id":"u1","msg":{"type":"unreadable","text":"{torn"}}"#);
        assert_eq!(records[5].1, r#"{"id":"u1","msg":{"type":"unreadable","text":"5"}}"#);
    }

    #[test]
    fn compaction_has_the_history_before_and_after() {
        let mut folded = RolloutFold::new();
        let local = r#"{"timestamp":"2026-05-01T10:00:04.000Z","type":"compacted","payload":{"message":"Summed up.","replacement_history":[{"type":"message","text":"S"}],"window_id":"w"}}"#;
        let remote = r#"{"timestamp":"2026-05-01T10:00:05.000Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"compaction","encrypted_content":"x"}]}}"#;
        let old =
            r#"{"timestamp":"2026-05-01T10:00:06.000Z","type":"compacted","payload":{"message":"Old."}}"#;
        let records =
            fold(&mut folded, &[META, START, &item("a"), &item("b"), local, &item("c"), remote, old]);
        let boundaries: Vec<&str> = records
            .iter()
            .filter(|(record_type, _)| *record_type == SpineType::CompactionBoundary)
            .map(|(_, payload)| payload.as_str())
            .collect();
        assert_eq!(
            boundaries,
            [
                r#"{"turn_id":"u1","kind":"local","summary_message":"Summed up.","pre_compaction_history":[{"type":"message","text":"a"},{"type":"message","text":"b"}],"post_compaction_history":[{"type":"message","text":"S"}]}"#,
                r#"{"turn_id":"u1","kind":"remote","pre_compaction_history":[{"type":"message","text":"S"},{"type":"message","text":"c"}],"post_compaction_history":[{"type":"compaction","encrypted_content":"x"}]}"#,
            ]
        );
        assert!(records.iter().any(|(_, payload)| payload
            == r#"{"id":"u1","msg":{"type":"compacted","payload":{"message":"Summed up.","window_id":"w"}}}"#));
        assert_eq!(
            records.last().unwrap().1,
            r#"{"id":"u1","msg":{"type":"compacted","payload":{"message":"Old."}}}"#
        );
    }

    #[test]
    fn fork_is_incomplete_without_its_base_history() {
        let meta =
            META.replace(r#""cwd""#, r#""history_base":{"thread_id":"t0","end_byte_offset":77},"cwd""#);
        let compacted = r#"{"type":"compacted","payload":{"message":"","replacement_history":[]}}"#;
        let mut alone = RolloutFold::new();
        let records = fold(&mut alone, &[&meta, &item("own"), compacted]);
        assert_eq!(alone.base(), Some(&Base { thread: "t0".to_owned(), bytes: Some(77) }));
        assert!(records.last().unwrap().1.contains("\"pre_incomplete\":\"it goes on from thread t0"));
        let mut parent = RolloutFold::new();
        fold(&mut parent, &[&META.replace("t1", "t0"), &item("parent")]);
        let mut whole = RolloutFold::new();
        fold(&mut whole, &[&meta]);
        whole.give_base(parent.history().clone());
        let records = fold(&mut whole, &[&item("own"), compacted]);
        let payload = &records.last().unwrap().1;
        assert!(payload.contains(r#"[{"type":"message","text":"parent"},{"type":"message","text":"own"}]"#));
        assert!(!payload.contains("pre_incomplete"));
    }

    #[test]
    fn copied_lines_are_marked_and_belong_to_the_history() {
        let meta =
            META.replace(r#""cwd""#, r#""forked_from_id":"t0","subagent_history_start_ordinal":3,"cwd""#);
        let copied =
            item("parents").replace("\"type\":\"response_item\"", "\"ordinal\":1,\"type\":\"response_item\"");
        let own =
            item("own").replace("\"type\":\"response_item\"", "\"ordinal\":3,\"type\":\"response_item\"");
        let mut folded = RolloutFold::new();
        let records = fold(&mut folded, &[&meta, &copied, &own]);
        assert!(records[2].1.ends_with(r#""copied_from":"t0"}"#), "{}", records[2].1);
        assert!(!records[3].1.contains("copied_from"));
        assert_eq!(folded.history().to_json().as_str().matches("message").count(), 2);
    }

    #[test]
    fn files_without_an_envelope_are_read() {
        let head = r#"{"id":"t1","timestamp":"2026-05-01T10:00:00.000Z","instructions":null,"git":null}"#;
        let state = r#"{"record_type":"state"}"#;
        let message = r#"{"type":"message","role":"user","content":[]}"#;
        let mut folded = RolloutFold::new();
        let records = fold(&mut folded, &[head, state, message]);
        assert_eq!(folded.thread().unwrap().as_str(), "t1");
        assert_eq!(
            records[1].1,
            r#"{"id":"","msg":{"type":"record_type","payload":{"record_type":"state"}}}"#
        );
        assert_eq!(
            records[2].1,
            r#"{"id":"","msg":{"type":"raw_response_item","item":{"type":"message","role":"user","content":[]}}}"#
        );
    }
}
