//! What a session is, in the words of a session file, from what a connection says of its thread.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{ThreadId, Timestamp};

use super::super::fields::PayloadFields;
use super::super::payload::object_of;

/// What git is called on the wire, and in a session file.
const GIT_NAMES: [(&str, &str); 3] =
    [("sha", "commit_hash"), ("branch", "branch"), ("originUrl", "repository_url")];

/// Returns the session of a thread that a client has loaded.
pub(super) fn loaded(thread: &ThreadId, said: &PayloadFields<'_>, originator: Option<&RawJson>) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(thread.as_str()));
        object.optional("timestamp", created_at(said).as_ref(), ObjectWriter::json);
        for (name, wire) in [
            ("cwd", "cwd"),
            ("cli_version", "cliVersion"),
            ("source", "source"),
            ("model_provider", "modelProvider"),
            ("forked_from_id", "forkedFromId"),
            ("parent_thread_id", "parentThreadId"),
            ("rollout_path", "path"),
        ] {
            object.optional(name, known(said, wire).as_ref(), ObjectWriter::json);
        }
        let git = known(said, "gitInfo").map(|_| git(&said.object("gitInfo")));
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

fn known(said: &PayloadFields<'_>, name: &str) -> Option<RawJson> {
    said.json(name).filter(|value| !value.is_null())
}

/// Returns when it began: the wire counts seconds, and a session file has a time.
fn created_at(said: &PayloadFields<'_>) -> Option<RawJson> {
    let told = known(said, "createdAt")?;
    let time = told.as_str().parse().ok().and_then(Timestamp::from_unix_seconds);
    Some(time.map_or(told, |time| time.as_json().to_json()))
}

fn git(said: &PayloadFields<'_>) -> RawJson {
    let renamed = GIT_NAMES
        .into_iter()
        .filter_map(|(wire, name)| Some((JsonString::from_text(name), known(said, wire)?)));
    object_of(renamed.chain(said.others(&GIT_NAMES.map(|(wire, _)| wire))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, want: &str) {
        let thread = ThreadId::parse("t").unwrap();
        assert_eq!(loaded(&thread, &PayloadFields::parse(said), None).as_str(), want);
    }

    #[test]
    fn times_and_git_are_written_as_a_session_file_has_them() {
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
