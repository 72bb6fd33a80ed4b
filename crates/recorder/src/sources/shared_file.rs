//! Files that hold data of several sessions or projects: prompt histories and session lists.
//!
//! They are stored without the pieces that are excluded or forgotten. If there are none, they are stored byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_vault::{Role, SourceInfo};

use super::exclusions::{Exclusions, Verdict};
use super::project_lookup::ProjectLookup;

/// The kinds of shared files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFileFormat {
    /// `history.jsonl` of Claude Code and Codex: one prompt per line.
    Prompts,
    /// `session_index.jsonl` of Codex: one session per line.
    SessionLines,
    /// `sessions-index.json` of Claude Code: a list of the sessions of one project.
    SessionList,
    /// `logs.json` of Gemini CLI: a list of what was typed in one project.
    Log,
    /// `projects.json` of Gemini CLI: the names of projects by their directories.
    Projects,
}

/// A piece of a shared file: one line or list entry.
#[derive(Clone, Debug, Default)]
pub struct SharedFilePiece<'a> {
    /// The bytes of the piece.
    pub raw: &'a str,
    /// Its session.
    pub session: Option<String>,
    /// Its directory.
    pub dir: Option<String>,
    /// The text that the user typed.
    pub text: Option<String>,
    /// Its time, in milliseconds since 1970.
    pub time_ms: Option<f64>,
}

/// A shared file after filtering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilteredFile {
    /// The remaining content.
    pub bytes: Vec<u8>,
    /// How many pieces were left out.
    pub left_out: u64,
    /// How many pieces remain.
    pub pieces: u64,
}

/// The exclusions for pieces of shared files.
#[derive(Debug)]
pub(crate) struct PieceRules {
    pub(crate) exclusions: Exclusions,
    pub(crate) membership: Arc<ProjectLookup>,
}

impl PieceRules {
    /// Tells whether a piece is recorded. A piece of an unknown project is not.
    pub(crate) fn keep(&self, info: &SourceInfo, piece: &SharedFilePiece<'_>) -> bool {
        let home = info.home.as_ref().map(|home| home.0.clone()).or_else(|| {
            // A copy of one file of a home.
            info.path.0.parent().map(Path::to_owned)
        });
        let verdict = match (&piece.dir, info.known_provider(), &piece.session) {
            (Some(dir), _, _) => self.exclusions.judge_dir(Some(dir)),
            (None, Some(provider), Some(session)) => {
                let home = home.unwrap_or_default();
                self.exclusions.judge_project(&self.membership.of_session(provider, &home, session))
            }
            (None, _, _) => Verdict::Unknown,
        };
        verdict == Verdict::Included
    }
}

/// The fields that identify a piece, in all spellings that agents use.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "sessionId")]
    session_camel: Option<String>,
    session_id: Option<String>,
    id: Option<serde_json::Value>,
    project: Option<String>,
    #[serde(rename = "projectPath")]
    project_path: Option<String>,
    display: Option<String>,
    text: Option<String>,
    message: Option<serde_json::Value>,
    timestamp: Option<serde_json::Value>,
    ts: Option<f64>,
}

impl SharedFileFormat {
    /// Returns the kind of a shared file by its name; `None` for other files.
    #[must_use]
    pub fn of(info: &SourceInfo) -> Option<Self> {
        let kind = match info.path.0.file_name()?.to_str()? {
            "history.jsonl" => Self::Prompts,
            "session_index.jsonl" => Self::SessionLines,
            "sessions-index.json" => Self::SessionList,
            "logs.json" => Self::Log,
            "projects.json" => Self::Projects,
            _ => return None,
        };
        (info.role == Role::Shared || info.home.is_none()).then_some(kind)
    }

    /// Tells whether it has data of several projects, not only of several sessions of one project.
    pub(crate) fn is_of_several_projects(self) -> bool {
        matches!(self, Self::Prompts | Self::SessionLines | Self::Projects)
    }

    /// Removes the pieces that `keep` refuses. If there are none, all bytes stay as they are. Returns `None` if the
    /// file does not have the expected form: then nothing is known about its pieces.
    #[must_use]
    pub fn filter(
        self,
        bytes: &[u8],
        keep: &mut dyn FnMut(&SharedFilePiece<'_>) -> bool,
    ) -> Option<FilteredFile> {
        match self {
            Self::Prompts | Self::SessionLines => Some(self.filter_lines(bytes, keep)),
            Self::Log => filter_list(std::str::from_utf8(bytes).ok()?, None, keep),
            Self::SessionList => {
                #[derive(Deserialize)]
                struct List<'a> {
                    #[serde(borrow)]
                    entries: &'a RawValue,
                }
                let text = std::str::from_utf8(bytes).ok()?;
                let list: List<'_> = serde_json::from_str(text).ok()?;
                filter_list(list.entries.get(), Some(text), keep)
            }
            Self::Projects => filter_projects(std::str::from_utf8(bytes).ok()?, keep),
        }
    }

    fn filter_lines(self, bytes: &[u8], keep: &mut dyn FnMut(&SharedFilePiece<'_>) -> bool) -> FilteredFile {
        let mut filtered = FilteredFile::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = std::str::from_utf8(line).unwrap_or_default();
            let piece = piece_of(text, self == Self::SessionLines);
            let is_whole = line.ends_with(b"\n");
            match piece {
                Some(piece) if keep(&piece) => {
                    filtered.bytes.extend_from_slice(line);
                    filtered.pieces += 1;
                }
                // The file may end inside a line: the line is read again when it is complete.
                None if !is_whole => {}
                None if line.trim_ascii().is_empty() => filtered.bytes.extend_from_slice(line),
                Some(_) | None => filtered.left_out += 1,
            }
        }
        filtered
    }
}

fn piece_of(raw: &str, has_session_as_id: bool) -> Option<SharedFilePiece<'_>> {
    let fields: Fields = serde_json::from_str(raw).ok()?;
    let id = fields.id.and_then(|id| id.as_str().map(str::to_owned)).filter(|_| has_session_as_id);
    let message = fields.message.and_then(|message| message.as_str().map(str::to_owned));
    let time_ms = fields.timestamp.and_then(|time| time.as_f64());
    Some(SharedFilePiece {
        raw,
        session: fields.session_camel.or(fields.session_id).or(id),
        dir: fields.project.or(fields.project_path),
        text: fields.display.or(fields.text).or(message),
        time_ms: time_ms.or(fields.ts.map(|seconds| seconds * 1000.0)),
    })
}

/// Removes pieces from a list, which may be inside a document.
fn filter_list(
    list: &str,
    document: Option<&str>,
    keep: &mut dyn FnMut(&SharedFilePiece<'_>) -> bool,
) -> Option<FilteredFile> {
    let pieces: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let mut texts = Vec::new();
    for raw in &pieces {
        if keep(&piece_of(raw.get(), false)?) {
            texts.push(raw.get());
        }
    }
    let left_out = (pieces.len() - texts.len()) as u64;
    let whole = document.unwrap_or(list);
    let text = if left_out == 0 {
        whole.to_owned()
    } else {
        whole.replacen(list, &format!("[{}]", texts.join(",")), 1)
    };
    Some(FilteredFile { bytes: text.into_bytes(), left_out, pieces: texts.len() as u64 })
}

fn filter_projects(text: &str, keep: &mut dyn FnMut(&SharedFilePiece<'_>) -> bool) -> Option<FilteredFile> {
    #[derive(Deserialize)]
    struct Projects<'a> {
        #[serde(borrow)]
        projects: &'a RawValue,
    }
    let list: Projects<'_> = serde_json::from_str(text).ok()?;
    let mut projects: BTreeMap<String, String> = serde_json::from_str(list.projects.get()).ok()?;
    let before = projects.len();
    projects.retain(|dir, name| {
        let raw = format!("{dir} {name}");
        keep(&SharedFilePiece { raw: &raw, dir: Some(dir.clone()), ..SharedFilePiece::default() })
    });
    let (left_out, pieces) = ((before - projects.len()) as u64, projects.len() as u64);
    if left_out == 0 {
        return Some(FilteredFile { bytes: text.as_bytes().to_vec(), left_out, pieces });
    }
    // Other fields are dropped, as their content is unknown.
    let json = serde_json::json!({ "projects": projects }).to_string();
    Some(FilteredFile { bytes: json.into_bytes(), left_out, pieces })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: SharedFileFormat, text: &str, want: Option<(&str, u64)>) {
        let mut keep = |piece: &SharedFilePiece<'_>| {
            piece.session.as_deref() != Some("gone") && piece.dir.as_deref() != Some("/gone")
        };
        let filtered = kind.filter(text.as_bytes(), &mut keep).map(|found| (found.bytes, found.left_out));
        let want = want.map(|(kept, left_out)| (kept.as_bytes().to_vec(), left_out));
        assert_eq!(filtered, want, "{kind:?} {text}");
    }

    #[test]
    fn forgotten_lines_are_left_out_and_others_stay() {
        let kept = "{\"display\":\"a\", \"project\":\"/here\",\"timestamp\":1}\n";
        let text = format!("{{\"display\":\"b\",\"project\":\"/gone\"}}\n{kept}{{\"sessionId\":\"gone\"}}\n");
        check(SharedFileFormat::Prompts, &text, Some((kept, 2)));
        check(
            SharedFileFormat::Prompts,
            "{\"session_id\":\"gone\",\"ts\":1,\"text\":\"x\"}\n\n",
            Some(("\n", 1)),
        );
        // An incomplete line is left for later.
        check(
            SharedFileFormat::Prompts,
            "{\"session_id\":\"s\"}\n{\"sess",
            Some(("{\"session_id\":\"s\"}\n", 0)),
        );
        check(SharedFileFormat::Prompts, "no record\n", Some(("", 1)));
        check(
            SharedFileFormat::SessionLines,
            "{\"id\":\"gone\"}\n{\"id\":\"s\"}\n",
            Some(("{\"id\":\"s\"}\n", 1)),
        );
    }

    #[test]
    fn forgotten_entries_are_left_out_of_lists() {
        let list = "{\"version\":1, \"entries\":[{\"sessionId\":\"gone\"}, {\"sessionId\":\"s\"}], \"x\":2}";
        check(
            SharedFileFormat::SessionList,
            list,
            Some(("{\"version\":1, \"entries\":[{\"sessionId\":\"s\"}], \"x\":2}", 1)),
        );
        check(SharedFileFormat::Log, "[ {\"sessionId\":\"s\"} ]", Some(("[ {\"sessionId\":\"s\"} ]", 0)));
        check(SharedFileFormat::Log, "[{\"sessionId\":\"gone\"}]", Some(("[]", 1)));
        check(SharedFileFormat::Log, "[{\"sessionId\":", None);
        let projects = "{\"projects\":{\"/gone\":\"g\",\"/here\":\"h\"}}";
        check(SharedFileFormat::Projects, projects, Some(("{\"projects\":{\"/here\":\"h\"}}", 1)));
    }
}
