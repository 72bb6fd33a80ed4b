//! The directory of a Gemini CLI project. Chat files have only its hash; Gemini CLI writes the directory beside them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_disk::read_host_file;

/// The maximum length of a file with directories. Real ones have a few hundred bytes.
const SIZE_BYTES_MAX: u64 = 1024 * 1024;

/// Returns the path of the file that has the directory of a chat file's project, which may not exist.
///
/// ```
/// use std::path::{Path, PathBuf};
/// use steno_capture::discovery::gemini_root_file;
///
/// let chat = Path::new("/agents/gemini/tmp/web/chats/session-2026-06-08T08-14-0a1b2c3d.json");
/// assert_eq!(gemini_root_file(chat), Some(PathBuf::from("/agents/gemini/tmp/web/.project_root")));
/// assert_eq!(gemini_root_file(Path::new("/agents/session.json")), None);
/// ```
#[must_use]
pub fn gemini_root_file(chat: &Path) -> Option<PathBuf> {
    // Chats are in `chats`, those of subagents one level below.
    let chats = chat.ancestors().skip(1).take(2).find(|dir| dir.ends_with("chats"))?;
    Some(chats.with_file_name(".project_root"))
}

/// Finds the directory of a chat file's project.
#[must_use]
pub fn gemini_project_of(chat: &Path) -> Option<String> {
    let root_file = gemini_root_file(chat)?;
    let project = root_file.parent()?;
    gemini_project_dir(project.parent()?.parent()?, project.file_name()?.to_str()?)
}

/// Finds the directory of a project in a home of Gemini CLI.
#[must_use]
pub fn gemini_project_dir(home: &Path, project: &str) -> Option<String> {
    let root = read_host_file(&home.join("tmp").join(project).join(".project_root"), SIZE_BYTES_MAX).ok();
    root.and_then(|text| gemini_root(&text)).or_else(|| {
        let text = read_host_file(&home.join("projects.json"), SIZE_BYTES_MAX).ok()?;
        let listed: Value = serde_json::from_slice(&text).ok()?;
        let mut projects = listed.get("projects")?.as_object()?.iter();
        projects.find(|(_, name)| name.as_str() == Some(project)).map(|(dir, _)| dir.clone())
    })
}

/// Reads the directory in the text of a `.project_root`.
#[must_use]
pub fn gemini_root(text: &[u8]) -> Option<String> {
    let dir = std::str::from_utf8(text).ok()?.trim();
    Path::new(dir).is_absolute().then(|| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_found_for_chats_and_subagents() {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join("tmp/web/chats");
        std::fs::create_dir_all(&chats).unwrap();
        let chat = chats.join("session-1.json");
        let subagent = chats.join("0a1b2c3d-0000-4000-8000-000000000001/s.jsonl");
        assert_eq!(gemini_project_of(&chat), None);

        std::fs::write(home.path().join("projects.json"), r#"{"projects":{"/w/listed":"web"}}"#).unwrap();
        assert_eq!(gemini_project_of(&chat).as_deref(), Some("/w/listed"));

        std::fs::write(home.path().join("tmp/web/.project_root"), "/w/web\n").unwrap();
        assert_eq!(gemini_project_of(&chat).as_deref(), Some("/w/web"));
        assert_eq!(gemini_project_of(&subagent).as_deref(), Some("/w/web"));
        assert_eq!(gemini_project_of(&home.path().join("tmp/web/logs.json")), None);
    }

    #[test]
    fn only_whole_paths_are_directories() {
        assert_eq!(gemini_root(b" /w/a b\n").as_deref(), Some("/w/a b"));
        assert_eq!(gemini_root(b"web"), None);
        assert_eq!(gemini_root(b""), None);
        assert_eq!(gemini_root(b"/w/\xff"), None);
    }
}
