//! What a search found, as JSON: for `steno search --json` and for `/v1/search`.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{RunId, Seq};
use steno_views::digest::TextKind;

use super::{SearchHit, SearchReport, SessionHits};
use crate::IdIndex;

impl SearchHit {
    /// Returns the name of the hit for `steno show`.
    #[must_use]
    pub fn handle(&self, ids: &IdIndex<RunId>) -> String {
        handle(ids, self.run, self.seq)
    }

    /// Returns the hit as JSON, with the session that it was found in.
    #[must_use]
    pub fn to_json(&self, session: &SessionHits, ids: &IdIndex<RunId>) -> RawJson {
        let digest = &session.row.digest;
        RawJson::object(|object| {
            string(object, "type", Some("hit"));
            string(object, "session_run_id", Some(&digest.id.to_string()));
            string(object, "run_id", Some(&self.run.to_string()));
            object.number("seq", self.seq.get());
            string(object, "handle", Some(&self.handle(ids)));
            string(object, "kind", Some(self.kind.name()));
            string(object, "tool", self.tool.as_deref());
            string(object, "title", digest.title.as_deref());
            string(object, "project", session.row.project.as_deref());
            string(object, "branch", digest.branch.as_deref());
            string(object, "provider", digest.provider.as_deref());
            string(object, "last_at", digest.last_at.as_ref().map(ToString::to_string).as_deref());
            object.number("matches", self.matches);
            string(object, "text", Some(&self.snippet.text));
            let places: Vec<String> =
                self.snippet.matches.iter().map(|place| format!("[{},{}]", place.start, place.end)).collect();
            object.json(
                "places",
                &RawJson::parse(&format!("[{}]", places.join(","))).unwrap_or_else(|_| RawJson::null()),
            );
        })
    }
}

impl SearchReport {
    /// Returns what was searched, as JSON. `next` is how many sessions to skip to read on, if some were not shown.
    #[must_use]
    pub fn to_json(&self, next: Option<u64>) -> RawJson {
        RawJson::object(|object| {
            string(object, "type", Some("searched"));
            object.number("sessions", self.sessions_searched);
            object.number("sessions_found", self.sessions_found);
            object.number("hits", self.hits);
            match next {
                Some(next) => object.number("next_skip", next),
                None => object.json("next_skip", &RawJson::null()),
            }
            for (kind, texts) in &self.texts_searched {
                object.number(plural(*kind), *texts);
            }
            object.number("unread", self.unread);
            object.number("damaged_runs", self.runs_damaged);
        })
    }
}

/// Returns the name of several texts of a kind.
#[must_use]
pub fn plural(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Prompt => "prompts",
        TextKind::Answer => "answers",
        TextKind::Thought => "thoughts",
        TextKind::Command => "commands",
        TextKind::Output => "outputs",
    }
}

/// Returns the shortest part of an id that names it.
#[must_use]
pub fn shortest_id(ids: &IdIndex<RunId>, run: RunId) -> String {
    let id = run.to_string();
    let exact = ids.exact(&id);
    let Some((_, meaning)) = exact.first() else { return id };
    ids.shortest(&id, meaning).split(&id).1.to_owned()
}

fn handle(ids: &IdIndex<RunId>, run: RunId, seq: Seq) -> String {
    format!("{}:{seq}", shortest_id(ids, run))
}

fn string(object: &mut ObjectWriter<'_>, name: &'static str, text: Option<&str>) {
    let json = text.map_or_else(RawJson::null, |text| JsonString::from(text).to_json());
    object.json(name, &json);
}
