//! A file to record, as it was found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_capture::discovery::{self, FoundFile, PathFile};
use steno_capture::tail::FileId;
use steno_model::{Provider, Word};
use steno_vault::{HostPath, Role, SourceInfo};

use super::identity::{SessionIdentity, copilot_dir};
use super::shared_file::PieceRules;

/// A file to record.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub(crate) info: SourceInfo,
    pub(crate) file: FileId,
    pub(crate) size_bytes: u64,
    /// Its modification time.
    pub(crate) modified: String,
    /// What is filtered out of it, if it has data of several projects and some are excluded.
    pub(crate) rules: Option<Arc<PieceRules>>,
}

impl SourceFile {
    /// Takes a file of an agent's home.
    #[must_use]
    pub fn in_home(file: &FoundFile) -> Self {
        let role = match file.place.role {
            discovery::Role::Transcript => Role::Transcript,
            discovery::Role::Sidecar => Role::Sidecar,
            discovery::Role::Shared => Role::Shared,
        };
        let info = SourceInfo {
            provider: Some(Word::Known(file.provider)),
            role,
            home: Some(HostPath(file.home.clone())),
            path: HostPath(file.path.clone()),
            session: file.place.session.as_ref().map(ToString::to_string),
            project: file.place.project.clone(),
            is_filtered: false,
        };
        Self::new(info, &file.stat)
    }

    /// Takes a file that the user named.
    #[must_use]
    pub fn given(file: &PathFile) -> Self {
        match file {
            PathFile::Placed(file) => Self::in_home(file),
            PathFile::Loose(file) => {
                let info = SourceInfo {
                    provider: None,
                    role: Role::Transcript,
                    home: None,
                    path: HostPath(file.path.clone()),
                    session: None,
                    project: None,
                    is_filtered: false,
                };
                Self::new(info, &file.stat)
            }
        }
    }

    fn new(info: SourceInfo, stat: &discovery::Stat) -> Self {
        let file = FileId { device: stat.device, inode: stat.inode };
        let modified = steno_model::Timestamp::from_instant(stat.modified).to_string();
        Self { info, file, size_bytes: stat.size_bytes, modified, rules: None }
    }

    /// Tells whether its records become events.
    pub(crate) fn is_wanted(&self) -> bool {
        self.info.role == Role::Transcript
    }

    /// Returns the file's description, with session and project read from its content where the path does not give
    /// them.
    pub(crate) fn whole_info(&self) -> SourceInfo {
        let mut info = self.info.clone();
        match &info.provider {
            Some(Word::Known(Provider::Codex)) => {
                info.project = info.project.take().or_else(|| SessionIdentity::of_file(self.path()).dir);
            }
            Some(Word::Known(Provider::Copilot)) => {
                if let Some(home) = &info.home {
                    info.project = copilot_dir(&home.0, self.path());
                }
            }
            Some(
                Word::Known(Provider::Claude | Provider::Gemini | Provider::OpenCode) | Word::Unknown(_),
            ) => {}
            None => {
                let identity = SessionIdentity::of_file(self.path());
                (info.session, info.project) = (identity.session, identity.dir);
            }
        }
        info
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.info.path.0
    }

    /// Returns its length when it was found.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the agent's home that it is in, if any.
    #[must_use]
    pub fn home(&self) -> Option<&PathBuf> {
        self.info.home.as_ref().map(|home| &home.0)
    }
}

/// Returns the modification time of the file at a path.
pub(super) fn modified_at(path: &Path) -> Option<String> {
    let modified = std::fs::symlink_metadata(path).and_then(|about| about.modified()).ok()?;
    let modified = jiff::Timestamp::try_from(modified).ok()?;
    Some(steno_model::Timestamp::from_instant(modified).to_string())
}
