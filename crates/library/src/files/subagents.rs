//! Finds the directories in which agents keep the files of a session's subagents.

use std::path::{Path, PathBuf};

use steno_adapters::Surface;
use steno_model::RunId;

use super::AgentFile;

/// Returns the directories with the subagents of a session's file; none for a file of anything else.
pub(super) fn subagent_dirs(path: &Path) -> Vec<PathBuf> {
    let is_packed = path.extension().is_some_and(|ending| ending == "zst");
    let plain = if is_packed { path.with_extension("") } else { path.to_owned() };
    let candidates = [of_claude(&plain), of_gemini(&plain)];
    let mut dirs: Vec<(Surface, PathBuf)> =
        candidates.into_iter().flatten().filter(|(_, dir)| dir.is_dir()).collect();
    if dirs.is_empty() {
        return Vec::new();
    }
    // Any file may have a name like that. What cannot be read is reported when the file is read.
    let surface = AgentFile::open(path).ok().and_then(|file| file.surface());
    dirs.retain(|(agent, _)| surface == Some(*agent));
    dirs.into_iter().map(|(_, dir)| dir).collect()
}

/// Claude Code names the directory of a session like its file.
fn of_claude(path: &Path) -> Vec<(Surface, PathBuf)> {
    vec![(Surface::ClaudeDisk, path.with_extension("").join("subagents"))]
}

/// Gemini CLI names the directory by the whole id of the session, of which the file's name has the beginning.
fn of_gemini(path: &Path) -> Vec<(Surface, PathBuf)> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let short = stem.strip_prefix("session-").and_then(|rest| rest.rsplit('-').next());
    let chats = path.parent().filter(|dir| dir.ends_with("chats"));
    let (Some(short), Some(chats)) = (short, chats) else { return Vec::new() };
    let is_its = |name: &str| name.starts_with(short) && RunId::parse(name).is_ok();
    let entries = std::fs::read_dir(chats).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_its));
    named.map(|entry| (Surface::GeminiChat, entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = r#"{"type":"user","uuid":"u1","sessionId":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2026-06-08T08:14:42.123Z","message":{"role":"user","content":"Fix it."}}"#;
    const CODEX: &str = r#"{"timestamp":"2026-06-08T08:14:42.123Z","type":"session_meta","payload":{"id":"0199aaaa-0000-7000-8000-000000000001","timestamp":"2026-06-08T08:14:42.123Z","cwd":"/w","cli_version":"0.100.0"}}"#;
    const GEMINI: &str = r#"{"sessionId":"0a1b2c3d-0000-4000-8000-000000000001","projectHash":"h","startTime":"2026-06-08T08:14:42.000Z","lastUpdated":"2026-06-08T08:14:42.000Z","kind":"main"}"#;

    #[track_caller]
    fn check(name: &str, line: &str, dirs: &[&str], want: &[&str]) {
        let home = tempfile::tempdir().unwrap();
        for dir in dirs {
            std::fs::create_dir_all(home.path().join(dir)).unwrap();
        }
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Agents' files are recognised by content: a name that says that it is compressed need not be right.
        std::fs::write(&path, format!("{line}\n")).unwrap();
        let want: Vec<PathBuf> = want.iter().map(|dir| home.path().join(dir)).collect();
        assert_eq!(subagent_dirs(&path), want, "{name}");
    }

    #[test]
    fn subagents_are_beside_a_session_of_their_agent() {
        check("s.jsonl", CLAUDE, &["s/subagents", "s/tool-results"], &["s/subagents"]);
        check("s.jsonl.zst", CLAUDE, &["s/subagents"], &["s/subagents"]);
        check("s.jsonl", CLAUDE, &["s/other"], &[]);
        let (chat, own) =
            ("chats/session-2026-06-08T08-14-0a1b2c3d", "chats/0a1b2c3d-0000-4000-8000-000000000001");
        let other = "chats/0a1b2c3e-0000-4000-8000-000000000001";
        check(&format!("{chat}.jsonl"), GEMINI, &[own, other], &[own]);
        check(&format!("{chat}.jsonl.zst"), GEMINI, &[own], &[own]);
    }

    #[test]
    fn directories_beside_other_files_are_not_their_subagents() {
        check("s.jsonl", CODEX, &["s/subagents"], &[]);
        check("s.jsonl", r#"{"x":1}"#, &["s/subagents"], &[]);
        let own = "chats/0a1b2c3d-0000-4000-8000-000000000001";
        check("chats/session-2026-06-08T08-14-0a1b2c3d.jsonl", CLAUDE, &[own], &[]);
    }
}
