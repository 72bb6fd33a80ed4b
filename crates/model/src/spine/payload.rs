//! Checks the payload of a spine record, by its type (R106 to R114). Only the kind of values is checked, because their
//! content is foreign.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::SpineType;
use crate::Error;
use crate::json::{Fields, text_of};
use crate::word::{Vocabulary as _, vocabulary};

vocabulary! {
    /// The kind of an artifact (R110 to R112).
    ArtifactKind, "artifact kind" {
        /// The repository, commit and branch.
        GitInfo = "git_info",
        /// A diff against a commit, in a file.
        GitDiff = "git_diff",
        /// The shell's settings, in a file.
        ShellSnapshot = "shell_snapshot",
    }
}

vocabulary! {
    /// Who compacted the history (R113).
    CompactionKind, "compaction kind" {
        /// The agent itself.
        Local = "local",
        /// The model's provider.
        Remote = "remote",
    }
}

vocabulary! {
    /// What a parent thread answered for a child (R114).
    BridgeKind, "bridge kind" {
        /// Whether a command may run.
        ExecApproval = "exec_approval",
        /// Whether a patch may be applied.
        PatchApproval = "patch_approval",
        /// A question to the user.
        RequestUserInput = "request_user_input",
    }
}

/// The field names that are checked.
pub(super) const NAMES: [&str; 24] = [
    "id",
    "msg",
    "op",
    "kind",
    "turn_id",
    "context",
    "git",
    "repo_root",
    "base_sha",
    "shell",
    "artifact_path",
    "sha256",
    "summary_message",
    "pre_compaction_history",
    "post_compaction_history",
    "bridge_kind",
    "parent_thread_id",
    "parent_turn_id",
    "parent_call_id",
    "sub_agent_thread_id",
    "sub_agent_turn_id",
    "sub_agent_call_id",
    "decision",
    "user_input_response",
];

/// Tells whether a name token decodes to one of them.
pub(super) fn is_checked(token: &RawValue) -> bool {
    text_of(token).is_some_and(|found| NAMES.contains(&&*found))
}

/// A reference to a file beside the spine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRef<'a> {
    /// What it is.
    pub kind: ArtifactKind,
    /// Its path in the record, which may be any text.
    pub path: Cow<'a, str>,
    /// Its SHA-256, 64 lower-case hex digits.
    pub sha256: Cow<'a, str>,
}

/// What is wrong with a payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadFlaw {
    /// It is not an object.
    #[error("the payload of `{record_type}` is not an object")]
    NotAnObject {
        /// The record's type.
        record_type: SpineType,
    },
    /// A field is missing, duplicate or of the wrong kind.
    #[error("in the payload of `{record_type}`: {source}")]
    Field {
        /// The record's type.
        record_type: SpineType,
        /// What is wrong with it.
        #[source]
        source: Error,
    },
    /// It refers to an artifact of an unknown kind.
    #[error("an artifact of unknown kind `{found}`")]
    ArtifactKind {
        /// The kind.
        found: String,
        /// The file, if it names one like known kinds do.
        path: Option<String>,
    },
    /// A compaction lacks one of its two histories.
    #[error("a compaction needs the array `{field}`")]
    History {
        /// Which.
        field: &'static str,
    },
    /// A compaction is neither local nor remote.
    #[error("a compaction is `local` or `remote`, not `{found}`")]
    CompactionKind {
        /// What it says.
        found: String,
    },
    /// A bridge that is not of the three kinds.
    #[error("a bridge is `exec_approval`, `patch_approval` or `request_user_input`, not `{found}`")]
    BridgeKind {
        /// What it says.
        found: String,
    },
    /// A bridge without valid thread ids.
    #[error("a bridge: {source}")]
    BridgeIds {
        /// What is wrong with it.
        #[source]
        source: Error,
    },
    /// A bridge from a thread to itself.
    #[error("a bridge must join two different threads")]
    BridgeSelf,
    /// A bridge between two other threads.
    #[error("neither thread of the bridge is the thread of the record")]
    BridgeOfOthers,
    /// A bridge without its answer.
    #[error("a bridge of the kind `{kind}` without `{field}`")]
    Unanswered {
        /// The kind.
        kind: BridgeKind,
        /// What it has to have.
        field: &'static str,
    },
}

/// Checks a payload.
pub(super) fn check<'a>(
    record_type: SpineType,
    thread: &str,
    payload: Option<&Fields<'a>>,
) -> Result<Option<ArtifactRef<'a>>, PayloadFlaw> {
    let payload = PayloadReader(payload.ok_or(PayloadFlaw::NotAnObject { record_type })?);
    let shape = |checked: Result<(), Error>| {
        checked.map_err(|source| PayloadFlaw::Field { record_type, source }).map(|()| None)
    };
    match record_type {
        SpineType::SessionMeta => shape(payload.maybe("git", ValueKind::Object)),
        SpineType::TurnContext => {
            shape(payload.all(&[("turn_id", ValueKind::Text), ("context", ValueKind::Object)]))
        }
        SpineType::Submission => shape(payload.all(&[("id", ValueKind::Text), ("op", ValueKind::Object)])),
        SpineType::Event => shape(payload.all(&[("id", ValueKind::Text), ("msg", ValueKind::Object)])),
        SpineType::ArtifactRef => artifact(&payload),
        SpineType::CompactionBoundary => compaction(&payload).map(|()| None),
        SpineType::Bridge => bridge(&payload, thread).map(|()| None),
    }
}

fn artifact<'a>(payload: &PayloadReader<'_, 'a>) -> Result<Option<ArtifactRef<'a>>, PayloadFlaw> {
    let shape = |source| PayloadFlaw::Field { record_type: SpineType::ArtifactRef, source };
    let found = payload.text("kind").map_err(shape)?;
    let Some(kind) = ArtifactKind::find(&found) else {
        let path = payload.text("artifact_path").ok().map(Cow::into_owned);
        return Err(PayloadFlaw::ArtifactKind { found: found.into_owned(), path });
    };
    let required = match kind {
        ArtifactKind::GitInfo => {
            payload.all(&[("repo_root", ValueKind::Text), ("git", ValueKind::Object)]).map_err(shape)?;
            let git = payload.one("git").ok().flatten().and_then(|git| Fields::parse(git.get()).ok());
            let git = git.as_ref().map(PayloadReader);
            let known = ["commit_hash", "branch", "repository_url"];
            return match git
                .and_then(|git| known.iter().find_map(|name| git.maybe(name, ValueKind::Text).err()))
            {
                Some(source) => Err(shape(source)),
                None => Ok(None),
            };
        }
        ArtifactKind::GitDiff => "base_sha",
        ArtifactKind::ShellSnapshot => "shell",
    };
    payload.need(required, ValueKind::Text).map_err(shape)?;
    let path = payload.text("artifact_path").map_err(shape)?;
    let sha256 = payload.text("sha256").map_err(shape)?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if sha256.len() != 64 || !sha256.bytes().all(is_hex) {
        return Err(shape(Error::WrongField { field: "sha256", wanted: "64 lower-case hex digits" }));
    }
    Ok(Some(ArtifactRef { kind, path, sha256 }))
}

fn compaction(payload: &PayloadReader<'_, '_>) -> Result<(), PayloadFlaw> {
    let shape = |source| PayloadFlaw::Field { record_type: SpineType::CompactionBoundary, source };
    payload.need("turn_id", ValueKind::Text).map_err(shape)?;
    let kind = payload.text("kind").map_err(shape)?;
    if CompactionKind::find(&kind).is_none() {
        return Err(PayloadFlaw::CompactionKind { found: kind.into_owned() });
    }
    payload.maybe("summary_message", ValueKind::Text).map_err(shape)?;
    for field in ["pre_compaction_history", "post_compaction_history"] {
        payload.need(field, ValueKind::Array).map_err(|_| PayloadFlaw::History { field })?;
    }
    Ok(())
}

fn bridge(payload: &PayloadReader<'_, '_>, thread: &str) -> Result<(), PayloadFlaw> {
    let found = payload.text("bridge_kind");
    let found = found.map_err(|source| PayloadFlaw::Field { record_type: SpineType::Bridge, source })?;
    let Some(kind) = BridgeKind::find(&found) else {
        return Err(PayloadFlaw::BridgeKind { found: found.into_owned() });
    };
    let id = |field| match payload.text(field) {
        Ok(id) if id.is_empty() => Err(Error::WrongField { field, wanted: "an id" }),
        id => id,
    };
    let ids = |source| PayloadFlaw::BridgeIds { source };
    let (parent, child) = (id("parent_thread_id").map_err(ids)?, id("sub_agent_thread_id").map_err(ids)?);
    for field in ["parent_turn_id", "sub_agent_turn_id", "sub_agent_call_id"] {
        id(field).map_err(ids)?;
    }
    payload.maybe("parent_call_id", ValueKind::Text).map_err(ids)?;
    if parent == child {
        return Err(PayloadFlaw::BridgeSelf);
    }
    if parent != thread && child != thread {
        return Err(PayloadFlaw::BridgeOfOthers);
    }
    let field = match kind {
        BridgeKind::ExecApproval | BridgeKind::PatchApproval => "decision",
        BridgeKind::RequestUserInput => "user_input_response",
    };
    match payload.one(field) {
        Ok(Some(answer)) if answer.get() != "null" => Ok(()),
        Ok(_) => Err(PayloadFlaw::Unanswered { kind, field }),
        Err(source) => Err(PayloadFlaw::Field { record_type: SpineType::Bridge, source }),
    }
}

#[derive(Clone, Copy)]
enum ValueKind {
    Text,
    Object,
    Array,
}

impl ValueKind {
    fn fits(self, raw: &RawValue) -> bool {
        raw.get().starts_with(match self {
            Self::Text => '"',
            Self::Object => '{',
            Self::Array => '[',
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Object => "an object",
            Self::Array => "an array",
        }
    }
}

/// The fields of a payload, by name.
struct PayloadReader<'f, 'a>(&'f Fields<'a>);

impl<'a> PayloadReader<'_, 'a> {
    fn one(&self, name: &'static str) -> Result<Option<&'a RawValue>, Error> {
        let mut found = None;
        for (_, value) in self.0.iter().filter(|(key, _)| key.is(name)) {
            if found.replace(value).is_some() {
                return Err(Error::DuplicateField { field: name.into() });
            }
        }
        Ok(found)
    }

    fn need(&self, name: &'static str, kind: ValueKind) -> Result<&'a RawValue, Error> {
        let raw = self.one(name)?.ok_or(Error::MissingField { field: name })?;
        if kind.fits(raw) { Ok(raw) } else { Err(Error::WrongField { field: name, wanted: kind.words() }) }
    }

    fn all(&self, fields: &[(&'static str, ValueKind)]) -> Result<(), Error> {
        fields.iter().try_for_each(|(name, kind)| self.need(name, *kind).map(|_| ()))
    }

    /// A field that may be absent or null.
    fn maybe(&self, name: &'static str, kind: ValueKind) -> Result<(), Error> {
        match self.one(name)? {
            Some(raw) if raw.get() != "null" && !kind.fits(raw) => {
                Err(Error::WrongField { field: name, wanted: kind.words() })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn text(&self, name: &'static str) -> Result<Cow<'a, str>, Error> {
        let raw = self.need(name, ValueKind::Text)?;
        text_of(raw).ok_or(Error::WrongField { field: name, wanted: "a string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn flaw(record_type: SpineType, payload: &str) -> Option<PayloadFlaw> {
        check(record_type, "t1", Fields::parse(payload).ok().as_ref()).err()
    }

    /// A valid payload of a type, and the error when one of its fields is removed.
    #[track_caller]
    fn check_fields(record_type: SpineType, good: &str, needed: &[&str]) {
        assert_eq!(flaw(record_type, good), None, "{good}");
        for field in needed {
            let without = good.replace(&format!("\"{field}\":"), "\"x\":");
            let found = flaw(record_type, &without).unwrap_or_else(|| panic!("{without}"));
            assert!(found.to_string().contains(field), "{found}");
            let nulled = good.replace(&format!("\"{field}\":"), &format!("\"{field}\":null,\"x\":"));
            assert!(flaw(record_type, &nulled).is_some(), "{nulled}");
            let twice = good.replacen('{', &format!("{{\"{field}\":\"\","), 1);
            assert!(flaw(record_type, &twice).is_some(), "{twice}");
        }
        assert_eq!(flaw(record_type, "[]"), Some(PayloadFlaw::NotAnObject { record_type }));
    }

    #[test]
    fn payloads_have_the_fields_of_their_type() {
        check_fields(SpineType::SessionMeta, r#"{"id":"t1","git":{"branch":"main"}}"#, &[]);
        check_fields(SpineType::TurnContext, r#"{"turn_id":"u","context":{}}"#, &["turn_id", "context"]);
        check_fields(SpineType::Submission, r#"{"id":"","op":{"type":"x"}}"#, &["id", "op"]);
        check_fields(SpineType::Event, r#"{"id":"","msg":{}}"#, &["id", "msg"]);
        assert!(flaw(SpineType::SessionMeta, r#"{"git":"main"}"#).is_some());
        assert_eq!(flaw(SpineType::SessionMeta, r#"{"git":null}"#), None);
    }

    #[test]
    fn artifacts_have_the_fields_of_their_kind() {
        let sha256 = "0".repeat(64);
        let info = r#"{"kind":"git_info","repo_root":"/p","git":{"commit_hash":"a","branch":null}}"#;
        check_fields(SpineType::ArtifactRef, info, &["kind", "repo_root", "git"]);
        assert!(flaw(SpineType::ArtifactRef, &info.replace("null", "7")).is_some());
        for (kind, beside) in [("git_diff", "base_sha"), ("shell_snapshot", "shell")] {
            let good = format!(
                r#"{{"kind":"{kind}","{beside}":"x","artifact_path":"artifacts/a","sha256":"{sha256}"}}"#
            );
            check_fields(SpineType::ArtifactRef, &good, &["kind", beside, "artifact_path", "sha256"]);
            assert!(flaw(SpineType::ArtifactRef, &good.replace(&sha256, "abc")).is_some());
            let other = flaw(SpineType::ArtifactRef, &good.replace(kind, "hologram"));
            let path = Some("artifacts/a".to_owned());
            assert_eq!(other, Some(PayloadFlaw::ArtifactKind { found: "hologram".into(), path }));
        }
    }

    #[test]
    fn compaction_needs_a_kind_and_both_histories() {
        let good = r#"{"turn_id":"u","kind":"local","summary_message":null,"pre_compaction_history":[],"post_compaction_history":[1]}"#;
        let needed = ["turn_id", "kind", "pre_compaction_history", "post_compaction_history"];
        check_fields(SpineType::CompactionBoundary, good, &needed);
        let kind = flaw(SpineType::CompactionBoundary, &good.replace("local", "lunar"));
        assert_eq!(kind, Some(PayloadFlaw::CompactionKind { found: "lunar".into() }));
        let object = flaw(SpineType::CompactionBoundary, &good.replace("[1]", "{}"));
        assert_eq!(object, Some(PayloadFlaw::History { field: "post_compaction_history" }));
    }

    #[test]
    fn bridge_needs_both_sides_and_the_answer() {
        let good = r#"{"bridge_kind":"exec_approval","parent_thread_id":"t1","parent_turn_id":"u1","sub_agent_thread_id":"t2","sub_agent_turn_id":"u2","sub_agent_call_id":"c2","decision":"accept"}"#;
        let ids = ["parent_thread_id", "parent_turn_id", "sub_agent_thread_id", "sub_agent_turn_id"];
        check_fields(SpineType::Bridge, good, &ids);
        check_fields(SpineType::Bridge, good, &["bridge_kind", "sub_agent_call_id", "decision"]);
        let of = |from: &str, to: &str| flaw(SpineType::Bridge, &good.replace(from, to));
        assert_eq!(of("exec", "tea"), Some(PayloadFlaw::BridgeKind { found: "tea_approval".into() }));
        assert_eq!(of("t2", "t1"), Some(PayloadFlaw::BridgeSelf));
        assert_eq!(of("t1", "t3"), Some(PayloadFlaw::BridgeOfOthers));
        assert!(matches!(of("u2", ""), Some(PayloadFlaw::BridgeIds { .. })));
        let unanswered =
            PayloadFlaw::Unanswered { kind: BridgeKind::RequestUserInput, field: "user_input_response" };
        assert_eq!(of("exec_approval", "request_user_input"), Some(unanswered));
        let answered =
            good.replace("exec_approval", "request_user_input").replace("decision", "user_input_response");
        assert_eq!(flaw(SpineType::Bridge, &answered), None);
        assert!(of("\"decision\"", "\"parent_call_id\":7,\"decision\"").is_some());
    }
}
