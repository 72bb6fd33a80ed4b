//! Which project a session belongs to where its path does not say: the directory that the agent was started in, as the
//! session's own files tell it.

use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use steno_capture::packing::Unpacked;
use steno_disk::{Links, open_regular};

/// How much of a file is looked at.
const HEAD_BYTES_MAX: u64 = 256 * 1024;

/// Returns the directory that a Codex session was started in, from the first record of its rollout.
pub(crate) fn of_codex(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Record {
        cwd: Option<String>,
        payload: Option<Meta>,
    }
    #[derive(Deserialize)]
    struct Meta {
        cwd: Option<String>,
    }
    let head = head_of(path)?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let record: Record = serde_json::from_slice(line).ok()?;
    record.payload.and_then(|meta| meta.cwd).or(record.cwd)
}

/// Returns the directory that a Copilot session was started in, from the description beside its events.
pub(crate) fn of_copilot(home: &Path, path: &Path) -> Option<String> {
    let mut below = path.strip_prefix(home).ok()?.components();
    let (state, session) = (below.next()?, below.next()?);
    let about = home.join(state).join(session).join("workspace.yaml");
    let head = head_of(&about)?;
    let text = String::from_utf8_lossy(&head);
    let value = text.lines().find_map(|line| line.strip_prefix("cwd:"))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// Reads the beginning of a file, without waiting for anything that is none.
fn head_of(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path, Links::Followed).ok()?;
    let mut head = Vec::new();
    // A compressed file may be cut, and its head tells all the same.
    Unpacked::new(file).take(HEAD_BYTES_MAX).read_to_end(&mut head).ok();
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_says_where_it_was_started_also_when_it_is_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let record = r#"{"type":"session_meta","payload":{"id":"i","cwd":"/srv/shop"}}"#;
        let plain = dir.path().join("r.jsonl");
        std::fs::write(&plain, format!("{record}\n{{}}\n")).unwrap();
        assert_eq!(of_codex(&plain).as_deref(), Some("/srv/shop"));
        let packed = dir.path().join("r.jsonl.zst");
        std::fs::write(&packed, zstd::encode_all(record.as_bytes(), 1).unwrap()).unwrap();
        assert_eq!(of_codex(&packed).as_deref(), Some("/srv/shop"));
        std::fs::write(&plain, "no record").unwrap();
        assert_eq!(of_codex(&plain), None);
    }

    #[test]
    fn a_description_says_where_a_copilot_session_was_started() {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session-state/s");
        std::fs::create_dir_all(&session).unwrap();
        std::fs::write(session.join("workspace.yaml"), "id: s\ncwd: /srv/shop\nbranch: main\n").unwrap();
        assert_eq!(of_copilot(dir.path(), &session.join("files/a")).as_deref(), Some("/srv/shop"));
        assert_eq!(of_copilot(dir.path(), dir.path()), None);
        // A pipe in its place holds nobody up.
        std::fs::remove_file(session.join("workspace.yaml")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(session.join("workspace.yaml")).status().unwrap();
        assert!(made.success());
        assert_eq!(of_copilot(dir.path(), &session.join("files/a")), None);
    }
}
