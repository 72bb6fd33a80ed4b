//! Which session a file belongs to and in which directory the session was started, read from the session's files where
//! the path does not tell.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::Deserialize;
use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};
use steno_model::Provider;
use steno_vault::{Role, SourceInfo};

/// The most bytes that are read of a file.
const HEAD_BYTES_MAX: u64 = 256 * 1024;

/// Session and directory, as the beginning of a file gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionIdentity {
    /// The agent's id for the session.
    pub session: Option<String>,
    /// The directory that it was started in.
    pub dir: Option<String>,
}

impl SessionIdentity {
    /// Reads the beginning of a file, compressed or not. Anything but a regular file gives nothing.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        head_of(path).map(|head| Self::of_head(&head)).unwrap_or_default()
    }

    /// Reads the first bytes of a session's records.
    #[must_use]
    pub fn of_head(head: &[u8]) -> Self {
        if let Some(identity) = Self::of_first_line(head) {
            return identity;
        }
        let session = ["sessionId", "session_id", "thread_id", "sessionID"];
        Self {
            session: session.iter().find_map(|key| string_at(head, key)),
            dir: string_at(head, "cwd").or_else(|| string_at(head, "workdir")),
        }
    }
}

impl SessionIdentity {
    /// Reads the first record, which has everything for a Codex session.
    fn of_first_line(head: &[u8]) -> Option<Self> {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(first).ok().and_then(of_codex)
    }
}

/// Returns the sessions of the records at the beginning of a file. There are several if records were copied.
pub(crate) fn sessions_in(head: &[u8]) -> BTreeSet<String> {
    const KEYS: [&str; 4] = ["sessionId", "session_id", "thread_id", "sessionID"];
    match SessionIdentity::of_first_line(head) {
        Some(identity) => identity.session.into_iter().collect(),
        None => KEYS.iter().flat_map(|key| strings_at(head, key)).collect(),
    }
}

/// Returns the threads that a subagent of Codex works for.
pub(crate) fn parents_in(head: &[u8]) -> Vec<String> {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    strings_at(first, "parent_thread_id")
}

/// Returns the transcript of a file's session: the file itself, or the transcript next to it.
pub(crate) fn session_file(info: &SourceInfo) -> Option<PathBuf> {
    let path = &info.path.0;
    if info.role == Role::Transcript {
        return Some(path.clone());
    }
    let id = info.session.as_deref()?.rsplit('/').next()?;
    let dir = path.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == id))?;
    match info.known_provider()? {
        Provider::Claude => Some(dir.with_extension("jsonl")),
        Provider::Copilot => Some(dir.join("events.jsonl")),
        Provider::Codex | Provider::Gemini | Provider::OpenCode => None,
    }
}

/// Returns the slug in the name of a plan outside of its session's directory; the session records the slug too.
pub(crate) fn plan_slug(info: &SourceInfo) -> Option<String> {
    let path = &info.path.0;
    let is_plan = path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "plans");
    let has_slug = match info.known_provider()? {
        Provider::Claude => is_plan && info.session.is_none(),
        Provider::Codex | Provider::Gemini | Provider::Copilot | Provider::OpenCode => false,
    };
    has_slug.then(|| slug_of(path))
}

/// Returns the slug in the name of a Claude Code plan, which may be one of a subagent.
pub(crate) fn slug_of(plan: &Path) -> String {
    let stem = plan.file_stem().unwrap_or_default().to_string_lossy();
    stem.split("-agent-").next().unwrap_or_default().to_owned()
}

/// The first record of a Codex session.
#[derive(Deserialize)]
struct CodexRecord {
    r#type: Option<String>,
    id: Option<String>,
    cwd: Option<String>,
    timestamp: Option<String>,
    payload: Option<CodexMeta>,
}

#[derive(Deserialize)]
struct CodexMeta {
    id: Option<String>,
    cwd: Option<String>,
}

fn of_codex(record: CodexRecord) -> Option<SessionIdentity> {
    let CodexRecord { r#type, id, cwd, timestamp, payload } = record;
    match (r#type.as_deref(), payload) {
        (Some("session_meta"), Some(meta)) => {
            Some(SessionIdentity { session: meta.id, dir: meta.cwd.or(cwd) })
        }
        // The first releases had no types.
        (None, None) if id.is_some() && timestamp.is_some() => {
            Some(SessionIdentity { session: id, dir: cwd })
        }
        _ => None,
    }
}

/// Returns the directory that a Copilot session was started in, from the description beside its events.
pub(crate) fn copilot_dir(home: &Path, path: &Path) -> Option<String> {
    let mut below = path.strip_prefix(home).ok()?.components();
    let (state, session) = (below.next()?, below.next()?);
    let dir = home.join(state).join(session);
    let events = if dir.is_dir() { dir.join("events.jsonl") } else { path.to_owned() };
    // The events give the first directory; the description is rewritten when the session changes directory.
    if let Some(begun) = SessionIdentity::of_file(&events).dir {
        return Some(begun);
    }
    let described = head_of(&dir.join("workspace.yaml")).and_then(|head| {
        let text = String::from_utf8_lossy(&head).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix("cwd:"))?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    });
    // Only plain paths are understood here.
    described.filter(|dir| dir.starts_with('/') && !dir.contains('\\'))
}

/// Returns the names that a session of Claude Code gives to its plans.
pub(crate) fn claude_slugs(head: &[u8]) -> BTreeSet<String> {
    let lines = head.split(|byte| *byte == b'\n');
    lines.filter_map(|line| string_at(line, "slug")).collect()
}

/// Finds the first string with a key in JSON that may be cut off.
pub(crate) fn string_at(head: &[u8], key: &str) -> Option<String> {
    strings(head, key, 1).pop()
}

/// Finds all strings with a key in JSON, at any depth.
pub(crate) fn strings_at(text: &[u8], key: &str) -> Vec<String> {
    strings(text, key, usize::MAX)
}

/// Finds strings by their key. Inside a string, the quotes of a key are escaped and do not match.
fn strings(head: &[u8], key: &str, most: usize) -> Vec<String> {
    let quoted = format!("\"{key}\"");
    let (mut texts, mut from) = (Vec::new(), 0);
    while texts.len() < most
        && let Some(at) = memmem::find(&head[from..], quoted.as_bytes())
    {
        let (start, end) = (from + at, from + at + quoted.len());
        let is_key = start == 0 || head[start - 1] != b'\\';
        let rest = head[end..].trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b":").filter(|_| is_key)
            && let Some(Ok(text)) = serde_json::Deserializer::from_slice(value).into_iter::<String>().next()
        {
            texts.push(text);
        }
        from = end;
    }
    texts
}

/// Reads the beginning of a regular file. Never blocks on a pipe or device.
pub(crate) fn head_of(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path, Links::Followed).ok()?;
    let mut head = Vec::new();
    // A compressed file may be cut; its beginning is still useful.
    UnpackReader::new(file).take(HEAD_BYTES_MAX).read_to_end(&mut head).ok();
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, session: Option<&str>, dir: Option<&str>) {
        let want = SessionIdentity { session: session.map(str::to_owned), dir: dir.map(str::to_owned) };
        assert_eq!(SessionIdentity::of_head(head.as_bytes()), want, "{head}");
    }

    #[test]
    fn session_and_directory_are_read_for_each_agent() {
        check(
            r#"{"type":"session_meta","payload":{"session_id":"other","id":"t","cwd":"/srv/shop"}}"#,
            Some("t"),
            Some("/srv/shop"),
        );
        check(r#"{"id":"t","timestamp":"2025-05-01T00:00:00Z","instructions":null}"#, Some("t"), None);
        check(
            "{\"type\":\"summary\",\"summary\":\"x\"}\n{\"cwd\":\"/a b\",\"sessionId\":\"s\"}\n",
            Some("s"),
            Some("/a b"),
        );
        check(r#"{"type":"thread.started","thread_id":"t"}"#, Some("t"), None);
        check(
            "{\n  \"sessionId\": \"g\",\n  \"messages\": [{\"content\": \"\\\"cwd\\\": \\\"no\\\"",
            Some("g"),
            None,
        );
        check(
            r#"{"type":"session.start","data":{"sessionId":"c","context":{"cwd":"/w"}}}"#,
            Some("c"),
            Some("/w"),
        );
        check("no record", None, None);
    }

    #[test]
    fn directory_is_read_from_a_compressed_rollout() {
        let dir = tempfile::tempdir().unwrap();
        let record = r#"{"type":"session_meta","payload":{"id":"i","cwd":"/srv/shop"}}"#;
        let packed = dir.path().join("r.jsonl.zst");
        std::fs::write(&packed, zstd::encode_all(record.as_bytes(), 1).unwrap()).unwrap();
        assert_eq!(SessionIdentity::of_file(&packed).dir.as_deref(), Some("/srv/shop"));
    }

    #[test]
    fn directory_is_read_from_a_copilot_description() {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session-state/s");
        std::fs::create_dir_all(&session).unwrap();
        std::fs::write(session.join("workspace.yaml"), "id: s\ncwd: /srv/shop\nbranch: main\n").unwrap();
        assert_eq!(copilot_dir(dir.path(), &session.join("files/a")).as_deref(), Some("/srv/shop"));
        assert_eq!(copilot_dir(dir.path(), dir.path()), None);
        // A pipe in its place does not block, and the events have the directory too.
        std::fs::remove_file(session.join("workspace.yaml")).unwrap();
        steno_testkit::places::make_pipe(session.join("workspace.yaml"));
        assert_eq!(copilot_dir(dir.path(), &session.join("files/a")), None);
        let event = r#"{"type":"session.start","data":{"context":{"cwd":"/srv/web"}}}"#;
        std::fs::write(session.join("events.jsonl"), event).unwrap();
        assert_eq!(copilot_dir(dir.path(), &session.join("files/a")).as_deref(), Some("/srv/web"));
    }
}
