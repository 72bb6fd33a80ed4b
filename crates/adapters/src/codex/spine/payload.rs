//! Payloads of spine records, with what came in them as it was.

use steno_model::SpineSource;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use super::history::History;
use super::turns::Turn;

/// The name and the adapter's version under which a spine says what it was made from.
const ADAPTER: &str = "spine/1";

/// Where a spine comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) source: SpineSource,
    /// The history that the session goes on from.
    pub(super) base: Option<&'a RawJson>,
    /// The file that it was made from.
    pub(super) path: Option<&'a str>,
}

impl From<SpineSource> for Origin<'_> {
    fn from(source: SpineSource) -> Self {
        Self { source, base: None, path: None }
    }
}

/// Adds where the spine comes from to what a session says of itself.
pub(super) fn session_meta(meta: &str, origin: Origin<'_>) -> RawJson {
    let Origin { source, base, path } = origin;
    let mut out = String::from(meta.trim_end().strip_suffix('}').unwrap_or("{"));
    let is_empty = out.trim_end().ends_with('{');
    let said = RawJson::object(|said| {
        said.word("kind", source.name());
        said.word("adapter", ADAPTER);
        let names = source.cannot_carry().iter().map(|name| JsonString::from_text(name).to_json());
        said.json("cannot_carry", &RawJson::array(names));
        said.optional("history_base", base, ObjectWriter::json);
        said.optional("path", path.map(JsonString::from_text).as_ref(), ObjectWriter::string);
    });
    out.push_str(if is_empty { "\"spine_source\":" } else { ",\"spine_source\":" });
    out.push_str(said.as_str());
    out.push('}');
    RawJson::parse(&out).unwrap_or_else(|_| RawJson::object(|object| object.json("spine_source", &said)))
}

/// Takes JSON that was read before.
pub(super) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap_or_else(|_| RawJson::null())
}

/// An event that came at some turn.
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

/// What a line of a type is called that has no message of its own in the agent's protocol.
pub(super) fn wrapped(kind: &str, payload: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.string("type", &JsonString::from_text(kind));
        object.json("payload", payload);
    })
}

/// A response item, as the agent's protocol names it.
pub(super) fn response_item(item: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.word("type", "raw_response_item");
        object.json("item", item);
    })
}

/// A line that is no JSON.
pub(super) fn unreadable(line: &[u8]) -> RawJson {
    let text = JsonString::from_text(&String::from_utf8_lossy(line));
    RawJson::object(|object| {
        object.word("type", "unreadable");
        object.string("text", &text);
    })
}

/// Puts an object together from fields with names of others.
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

/// Whose git, and where.
pub(super) fn git_info(cwd: Option<&JsonString>, git: &RawJson) -> RawJson {
    RawJson::object(|object| {
        object.word("kind", "git_info");
        // The session says where it works, which need not be the root.
        object.string("repo_root", cwd.unwrap_or(&JsonString::from_text("")));
        object.json("repo_root_is_cwd", &RawJson::from(true));
        object.json("git", git);
    })
}

/// What was before a compaction, and what is after it.
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
