//! `steno show --branches`: lists copies of a session that continued differently.

use serde_json::json;
use steno_journal::{Reader, Store};
use steno_library::Library;
use steno_model::{BlockContent, Payload, RunId, Seq, Timestamp};
use steno_session::{Branch, EventPosition, Session};
use steno_views::{EventRef, Lines, count, cut, visible};

use crate::commands::related_sessions::RelatedSessions;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::minute;
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// The maximum length of the first words.
const WORDS_CHARS_MAX: usize = 60;

/// A row of the list.
struct BranchRow {
    session: RunId,
    first: EventRef,
    events: u64,
    last_at: Option<Timestamp>,
    words: Option<String>,
}

pub fn run(text: &str, is_json: bool, settings: &Settings, output: &mut Output) -> Outcome {
    let related = RelatedSessions::read(text, runs::open_library(settings)?, settings)?;
    let mut rows = Vec::new();
    for tree in related.joined.nested() {
        let Some(session) = related.sessions.get(&tree.run_id) else { continue };
        for branch in &session.branches {
            rows.push(BranchRow::of(session, branch, &related.library)?);
        }
    }
    related.check()?;
    if rows.is_empty() {
        return Err(Failure::empty(format!("`{text}` has no branches")));
    }
    for row in rows {
        if is_json { output.json_line(&row.json()) } else { output.line(&row.line()) }
    }
    Ok(Exit::Done)
}

impl BranchRow {
    fn of(session: &Session, branch: &Branch, library: &Library) -> Result<Self, Failure> {
        let run = session.run_of(EventPosition { run: branch.run, seq: branch.first });
        let head = session.runs.get(branch.run.0);
        Ok(Self {
            session: session.id,
            first: EventRef { run, seq: branch.first },
            events: branch.events,
            last_at: head.and_then(|head| head.summary.last_at.clone()),
            words: first_words(library.store()?, run, branch.first)?,
        })
    }

    fn line(&self) -> String {
        let words = cut(self.words.as_deref().unwrap_or_default(), WORDS_CHARS_MAX);
        let line = format!(
            "{}  {}  last written {}  {}",
            self.first,
            count(self.events, "event"),
            minute(self.last_at.as_ref()),
            visible(&words, Lines::Escape)
        );
        line.trim_end().to_owned()
    }

    fn json(&self) -> String {
        json!({
            "session_id": self.session.to_string(),
            "run": self.first.run.to_string(),
            "seq": self.first.seq.get(),
            "events": self.events,
            "last_at": self.last_at.as_ref().map(ToString::to_string),
            "words": self.words,
        })
        .to_string()
    }
}

/// Returns the first line of text in a run, starting at an event.
fn first_words(store: &Store, run: RunId, from: Seq) -> Result<Option<String>, Failure> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    while let Some(recorded) = reader.read_next()? {
        if recorded.event.seq < from {
            continue;
        }
        let Payload::Message(message) = recorded.event.payload() else { continue };
        let words = message.blocks.iter().find_map(|block| {
            let BlockContent::Text(Some(text)) = &block.content else { return None };
            let text = text.to_text();
            text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        });
        if words.is_some() {
            return Ok(words);
        }
    }
    Ok(None)
}
