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

/// Finds the directory of a chat file's project: in the file beside its chats, else in the list of the home that it is in.
#[must_use]
pub fn gemini_project_of(chat: &Path) -> Option<String> {
    let root_file = gemini_root_file(chat)?;
    root_in(&root_file).or_else(|| {
        let project = root_file.parent()?;
        // Elsewhere, as in a backup, a directory of the same name is another project.
        let home = project.parent().filter(|dir| dir.ends_with("tmp"))?.parent()?;
        listed_dir(home, project.file_name()?.to_str()?)
    })
}

/// Finds the directory of a project in a home of Gemini CLI.
#[must_use]
pub fn gemini_project_dir(home: &Path, project: &str) -> Option<String> {
    root_in(&home.join("tmp").join(project).join(".project_root")).or_else(|| listed_dir(home, project))
}

/// Reads a `.project_root`.
fn root_in(root_file: &Path) -> Option<String> {
    gemini_root(&read_host_file(root_file, SIZE_BYTES_MAX).ok()?)
}

/// Finds the directory of a project in the `projects.json` of a home.
fn listed_dir(home: &Path, project: &str) -> Option<String> {
    let text = read_host_file(&home.join("projects.json"), SIZE_BYTES_MAX).ok()?;
    let listed: Value = serde_json::from_slice(&text).ok()?;
    let mut projects = listed.get("projects")?.as_object()?.iter();
    projects.find(|(_, name)| name.as_str() == Some(project)).map(|(dir, _)| dir.clone())
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

    /// A copy of a project's directory has its own file, and no home above it.
    #[test]
    fn directory_of_a_copy_is_found_beside_its_chats() {
        let dir = tempfile::tempdir().unwrap();
        let chats = dir.path().join("old/gemini/chats");
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("tmp/gemini/.project_root", "/wrong/place");
        put("projects.json", r#"{"projects":{"/wrong/list":"gemini"}}"#);
        assert_eq!(gemini_project_of(&chats.join("session-1.json")), None);

        put("old/gemini/.project_root", "/w/right");
        assert_eq!(gemini_project_of(&chats.join("session-1.json")).as_deref(), Some("/w/right"));
        let subagent = chats.join("0a1b2c3d-0000-4000-8000-000000000001/s.jsonl");
        assert_eq!(gemini_project_of(&subagent).as_deref(), Some("/w/right"));
    }

    #[test]
    fn only_whole_paths_are_directories() {
        assert_eq!(gemini_root(b" /w/a b\n").as_deref(), Some("/w/a b"));
        assert_eq!(gemini_root(b"web"), None);
        assert_eq!(gemini_root(b""), None);
        assert_eq!(gemini_root(b"/w/\xff"), None);
    }
}
