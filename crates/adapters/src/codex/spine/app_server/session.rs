//! What a session is, in the words of a session file, from what a connection says of its thread.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{ThreadId, Timestamp};

use super::super::fields::PayloadFields;
use super::super::payload::object_of;
use crate::codex::wire;
use crate::wire::RawField as _;

/// What git is called on the wire, and in a session file.
const GIT_NAMES: [(&str, &str); 3] =
    [("sha", "commit_hash"), ("branch", "branch"), ("originUrl", "repository_url")];

/// Returns the session of a thread that a client has loaded.
pub(super) fn loaded(thread: &ThreadId, said: &wire::Thread<'_>, originator: Option<&RawJson>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(thread.as_str()));
        object.optional("timestamp", created_at(said).as_ref(), ObjectWriter::json);
        for (name, value) in [
            ("cwd", said.cwd),
            ("cli_version", said.cli_version),
            ("source", said.source),
            ("model_provider", said.model_provider),
            ("forked_from_id", said.forked_from_id),
            ("parent_thread_id", said.parent_thread_id),
            ("rollout_path", said.path),
        ] {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
        let git = said.git_info.json().map(|info| git(&PayloadFields::parse(info.as_str())));
        object.optional("git", git.as_ref(), ObjectWriter::json);
        object.optional("originator", originator, ObjectWriter::json);
    })
}

/// Returns the session of a child, of which a connection says no more than whose it is.
pub(super) fn child(id: &str, parent: &str, originator: Option<&RawJson>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(id));
        object.string("parent_thread_id", &JsonString::from_text(parent));
        object.word("thread_source", "subagent");
        object.optional("originator", originator, ObjectWriter::json);
    })
}

/// Returns when it began: the wire counts seconds, and a session file has a time.
fn created_at(said: &wire::Thread<'_>) -> Option<RawJson> {
    let told = said.created_at.json()?;
    let time = told.as_str().parse().ok().and_then(Timestamp::from_unix_seconds);
    Some(time.map_or(told, |time| time.as_json().to_json()))
}

fn git(said: &PayloadFields<'_>) -> RawJson {
    let renamed = GIT_NAMES
        .into_iter()
        .filter_map(|(wire, name)| Some((JsonString::from_text(name), said.json(wire)?)))
        .filter(|(_, value)| !value.is_null());
    object_of(renamed.chain(said.others(&GIT_NAMES.map(|(wire, _)| wire))).collect())
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
