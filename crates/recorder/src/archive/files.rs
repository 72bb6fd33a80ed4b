//! A file to archive, as it was found.

use std::path::{Path, PathBuf};

use steno_capture::discovery::{self, FoundFile, GivenFile};
use steno_capture::tail::FileId;
use steno_vault::{HostPath, Role, SourceInfo};

use super::projects;

/// A file to archive.
#[derive(Clone, Debug)]
pub struct ToArchive {
    pub(crate) info: SourceInfo,
    pub(crate) file: FileId,
    pub(crate) size_bytes: u64,
    /// When it was last written to.
    pub(crate) modified: String,
}

impl ToArchive {
    /// Takes a file of an agent's home.
    #[must_use]
    pub fn found(file: &FoundFile) -> Self {
        let role = match file.place.role {
            discovery::Role::Transcript => Role::Transcript,
            discovery::Role::Sidecar => Role::Sidecar,
            discovery::Role::Shared => Role::Shared,
        };
        let info = SourceInfo {
            provider: Some(file.provider.name().to_owned()),
            role,
            home: Some(HostPath(file.home.clone())),
            path: HostPath(file.path.clone()),
            session: file.place.session.as_ref().map(ToString::to_string),
            project: file.place.project.clone(),
        };
        Self::new(info, &file.stat)
    }

    /// Takes a file that somebody named.
    #[must_use]
    pub fn given(file: &GivenFile) -> Self {
        match file {
            GivenFile::Placed(file) => Self::found(file),
            GivenFile::Loose(file) => {
                let info = SourceInfo {
                    provider: None,
                    role: Role::Transcript,
                    home: None,
                    path: HostPath(file.path.clone()),
                    session: None,
                    project: None,
                };
                Self::new(info, &file.stat)
            }
        }
    }

    fn new(info: SourceInfo, stat: &discovery::Stat) -> Self {
        let file = FileId { device: stat.device, inode: stat.inode };
        let modified = steno_model::Timestamp::from_instant(stat.modified).to_string();
        Self { info, file, size_bytes: stat.size_bytes, modified }
    }

    /// Tells whether its records are to be made into events.
    pub(crate) fn is_wanted(&self) -> bool {
        self.info.role == Role::Transcript
    }

    /// Returns what the file is, with its project where that has to be looked for.
    pub(crate) fn whole_info(&self) -> SourceInfo {
        SourceInfo { project: self.project(), ..self.info.clone() }
    }

    /// Returns the project, as the agent names it or by its directory.
    fn project(&self) -> Option<String> {
        let in_files = || match (self.info.provider.as_deref()?, &self.info.home) {
            ("codex", _) => projects::of_codex(self.path()),
            ("copilot", Some(home)) => projects::of_copilot(&home.0, self.path()),
            _ => None,
        };
        self.info.project.clone().or_else(in_files)
    }

    /// Returns where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.info.path.0
    }

    /// Returns how long it was when it was found.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the agent's home that it lies in, if any.
    #[must_use]
    pub fn home(&self) -> Option<&PathBuf> {
        self.info.home.as_ref().map(|home| &home.0)
    }
}
