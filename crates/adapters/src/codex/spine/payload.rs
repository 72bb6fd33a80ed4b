//! Builds payloads of spine records. JSON of the agent is put into them unchanged.

use steno_model::SpineSource;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::history::History;
use super::turns::Turn;

/// Name and version of this mapping, as written into every spine.
const ADAPTER: &str = "spine/1";

/// What a spine was made from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) source: SpineSource,
    /// The history that the session continues.
    pub(super) base: Option<&'a RawJson>,
    /// The path of the session file.
    pub(super) path: Option<&'a str>,
}

impl From<SpineSource> for Origin<'_> {
    fn from(source: SpineSource) -> Self {
        Self { source, base: None, path: None }
    }
}

/// Adds the origin of the spine to the head of a session.
pub(super) fn session_meta(meta: &str, origin: Origin<'_>) -> RawJson {
    let Origin { source, base, path } = origin;
    let mut out = String::from(meta.trim_end().strip_suffix('}').unwrap_or("{"));
    let is_empty = out.trim_end().ends_with('{');
    let spine_source = RawJson::object(|object| {
        object.word("kind", source.name());
        object.word("adapter", ADAPTER);
        let names = source.cannot_carry().iter().map(|name| JsonString::from_text(name).to_json());
        object.json("cannot_carry", &RawJson::array(names));
        object.optional("history_base", base, ObjectWriter::json);
        object.optional("path", path.map(JsonString::from_text).as_ref(), ObjectWriter::string);
    });
    out.push_str(if is_empty { "\"spine_source\":" } else { ",\"spine_source\":" });
    out.push_str(spine_source.as_str());
    out.push('}');
    RawJson::parse(&out)
        .unwrap_or_else(|_| RawJson::object(|object| object.json("spine_source", &spine_source)))
}

/// Parses text that is known to be JSON.
pub(super) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| RawJson::null())
}

/// Returns the payload of an event in a turn.
pub(super) fn event(turn: &Turn, msg: &RawJson, copied_from: Option<&str>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(&turn.id));
        object.json("msg", msg);
        if turn.is_inferred {
            object.json("turn_id_inferred", &RawJson::from(true));
        }
        if let Some(thread) = copied_from {
            object.string("copied_from", &JsonString::from_text(thread));
        }
    })
}

pub(super) fn turn_context(turn: &Turn, context: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.string("turn_id", &JsonString::from_text(&turn.id));
        object.json("context", context);
        if turn.is_inferred {
            object.json("turn_id_inferred", &RawJson::from(true));
        }
    })
}

/// Wraps a line whose type has no message in the agent's protocol.
pub(super) fn wrapped(kind: &str, payload: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.string("type", &JsonString::from_text(kind));
        object.json("payload", payload);
    })
}

/// Returns a response item as a message of the agent's protocol.
pub(super) fn response_item(item: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.word("type", "raw_response_item");
        object.json("item", item);
    })
}

/// Returns a message for a line that is not JSON.
pub(super) fn unreadable(line: &[u8]) -> RawJson {
    let text = JsonString::from_text(&String::from_utf8_lossy(line));
    RawJson::object(|object| {
        object.word("type", "unreadable");
        object.string("text", &text);
    })
}

/// Builds an object from fields whose names come from the agent.
pub(super) fn object_of(fields: Vec<(JsonString, RawJson)>) -> RawJson {
    let len =
        fields.iter().map(|(name, value)| name.as_raw().len() + value.as_str().len() + 2).sum::<usize>();
    let mut out = String::with_capacity(len + 2);
    for (name, value) in fields {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(name.as_raw());
        out.push(':');
        out.push_str(value.as_str());
    }
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    RawJson::parse(&out).unwrap_or_else(|_| RawJson::null())
}

/// Returns the payload of an artifact about the Git repository.
pub(super) fn git_info(cwd: Option<&JsonString>, git: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.word("kind", "git_info");
        // The session gives its working directory, which may be below the root.
        object.string("repo_root", cwd.unwrap_or(&JsonString::from_text("")));
        object.json("repo_root_is_cwd", &RawJson::from(true));
        object.json("git", git);
    })
}

/// A compaction, with the history before and after it.
pub(super) struct Boundary<'a> {
    pub(super) turn: &'a Turn,
    pub(super) is_remote: bool,
    pub(super) summary: Option<JsonString>,
    pub(super) before: &'a History,
    pub(super) after: &'a History,
}

impl Boundary<'_> {
    pub(super) fn payload(&self) -> RawJson {
        RawJson::object(|object| {
            object.string("turn_id", &JsonString::from_text(&self.turn.id));
            object.word("kind", if self.is_remote { "remote" } else { "local" });
            object.optional("summary_message", self.summary.as_ref(), ObjectWriter::string);
            object.json("pre_compaction_history", &self.before.to_json());
            object.json("post_compaction_history", &self.after.to_json());
            if self.turn.is_inferred {
                object.json("turn_id_inferred", &RawJson::from(true));
            }
            let missing = self.before.missing().map(JsonString::from_text);
            object.optional("pre_incomplete", missing.as_ref(), ObjectWriter::string);
        })
    }
}
