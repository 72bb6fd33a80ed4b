//! Describes a session as a session file does, from the messages of a connection.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{ThreadId, Timestamp};

use super::super::fields::PayloadFields;
use super::super::payload::object_of;
use crate::codex::wire;
use crate::wire::RawField as _;

/// The names of the fields about Git on the connection and in a session file.
const GIT_NAMES: [(&str, &str); 3] =
    [("sha", "commit_hash"), ("branch", "branch"), ("originUrl", "repository_url")];

/// Returns the head of a thread that a client loaded.
pub(super) fn loaded(thread: &ThreadId, fields: &wire::Thread<'_>, originator: Option<&RawJson>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(thread.as_str()));
        object.optional("timestamp", created_at(fields).as_ref(), ObjectWriter::json);
        for (name, value) in [
            ("cwd", fields.cwd),
            ("cli_version", fields.cli_version),
            ("source", fields.source),
            ("model_provider", fields.model_provider),
            ("forked_from_id", fields.forked_from_id),
            ("parent_thread_id", fields.parent_thread_id),
            ("rollout_path", fields.path),
        ] {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
        let git = fields.git_info.json().map(|info| git(&PayloadFields::parse(info.as_str())));
        object.optional("git", git.as_ref(), ObjectWriter::json);
        object.optional("originator", originator, ObjectWriter::json);
    })
}

/// Returns the head of a child. The connection gives only its parent.
pub(super) fn child(id: &str, parent: &str, originator: Option<&RawJson>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(id));
        object.string("parent_thread_id", &JsonString::from_text(parent));
        object.word("thread_source", "subagent");
        object.optional("originator", originator, ObjectWriter::json);
    })
}

/// Returns the start time. The connection has seconds, a session file has a timestamp.
fn created_at(fields: &wire::Thread<'_>) -> Option<RawJson> {
    let seconds = fields.created_at.json()?;
    let time = seconds.as_str().parse().ok().and_then(Timestamp::from_unix_seconds);
    Some(time.map_or(seconds, |time| time.as_json().to_json()))
}

fn git(fields: &PayloadFields<'_>) -> RawJson {
    let renamed = GIT_NAMES
        .into_iter()
        .filter_map(|(wire, name)| Some((JsonString::from_text(name), fields.json(wire)?)))
        .filter(|(_, value)| !value.is_null());
    object_of(renamed.chain(fields.others(&GIT_NAMES.map(|(wire, _)| wire))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;

    #[track_caller]
    fn check(said: &str, want: &str) {
        let thread = ThreadId::parse("t").unwrap();
        assert_eq!(loaded(&thread, &parse(said).unwrap(), None).as_str(), want);
    }

    #[test]
    fn time_and_git_have_the_names_of_a_session_file() {
        check(
            r#"{"id":"t","createdAt":1794805641,"gitInfo":{"sha":"c0","branch":null,"originUrl":"https://x/y","n":1e400}}"#,
            r#"{"id":"t","timestamp":"2026-11-16T05:07:21.000Z","git":{"commit_hash":"c0","repository_url":"https://x/y","n":1e400}}"#,
        );
        check(
            r#"{"createdAt":"2026-11-16T05:07:21Z","gitInfo":null}"#,
            r#"{"id":"t","timestamp":"2026-11-16T05:07:21Z"}"#,
        );
    }
}
