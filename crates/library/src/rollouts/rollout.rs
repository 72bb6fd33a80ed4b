//! One rollout, in the vault or where the agent has it, read as the agent wrote it.

use std::cell::OnceCell;
use std::io::{self, Read as _, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_adapters::Surface;
use steno_adapters::codex::spine::RolloutFold;
use steno_capture::packing::UnpackReader;
use steno_disk::{Links, open_regular};
use steno_model::{Packing, ThreadId};
use steno_spine::{OnPiece, RolloutFile};
use steno_vault::{Manifest, Vault};

use crate::unpacked::{GenerationError, read_unpacked};
use crate::{AgentFile, Error, FileError};

/// A rollout: the agent's own record of a thread.
pub struct Rollout {
    path: PathBuf,
    /// Its name in a bundle.
    name: String,
    thread: Option<String>,
    place: RolloutPlace,
    content: OnceCell<RolloutContent>,
}

/// Where the bytes of a rollout are.
enum RolloutPlace {
    Vault {
        vault: Arc<Vault>,
        manifest: Box<Manifest>,
        generation: u32,
    },
    /// At its path.
    Outside,
}

/// The bytes of a rollout when they were first read.
struct RolloutContent {
    bytes: u64,
    sha256: String,
}

impl Rollout {
    /// Takes the last generation of a source.
    pub(super) fn in_vault(vault: &Arc<Vault>, manifest: &Manifest) -> Self {
        let generation = manifest.generation_last().unwrap_or_default();
        let manifest = Box::new(manifest.clone());
        let path = manifest.info.path.0.clone();
        Self::new(path, RolloutPlace::Vault { vault: Arc::clone(vault), manifest, generation })
    }

    /// Takes the file at a path if it is a rollout of the thread.
    pub(super) fn at_path(path: &str, thread: &ThreadId) -> Result<Option<Self>, Error> {
        let path = PathBuf::from(path);
        // A spine may come from anyone, and name any file.
        let Ok(opened) = AgentFile::open(&path) else { return Ok(None) };
        if opened.surface() != Some(Surface::CodexRollout) {
            return Ok(None);
        }
        let rollout = Self::new(path, RolloutPlace::Outside);
        let is_of_thread = rollout.beginning()?.thread() == Some(thread);
        Ok(is_of_thread.then_some(rollout))
    }

    fn new(path: PathBuf, place: RolloutPlace) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = bundle_name(name.strip_suffix(".zst").unwrap_or(&name));
        Self { path, name, thread: None, place, content: OnceCell::new() }
    }

    /// Marks it as a rollout of another thread than the one for which it was found.
    pub(super) fn set_thread(&mut self, thread: &str) {
        self.thread = Some(thread.to_owned());
    }

    /// Returns where the agent has it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its name in a bundle.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its path in a bundle.
    pub(super) fn file(&self) -> String {
        format!("rollout/{}", self.name)
    }

    /// Describes it for a bundle. The first call reads all of it, for its length and hash.
    ///
    /// # Errors
    /// An error of the vault or the file.
    pub fn about(&self) -> Result<RolloutFile, Error> {
        let content = if let Some(content) = self.content.get() {
            content
        } else {
            let read = self.read_content()?;
            self.content.get_or_init(|| read)
        };
        Ok(RolloutFile {
            file: self.file(),
            path: self.path.display().to_string(),
            thread_id: self.thread.clone(),
            bytes: content.bytes,
            sha256: content.sha256.clone(),
        })
    }

    /// Folds its first line, which has the thread and what it continues.
    pub(super) fn beginning(&self) -> Result<RolloutFold, Error> {
        let mut fold = RolloutFold::new();
        fold.line(0, &self.first_line()?);
        Ok(fold)
    }

    fn read_content(&self) -> Result<RolloutContent, Error> {
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        self.read(|piece| {
            hash.update(piece);
            bytes += piece.len() as u64;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(RolloutContent { bytes, sha256: HEXLOWER.encode(&hash.finalize()) })
    }

    /// Reads its first line, which says what it is.
    fn first_line(&self) -> Result<Vec<u8>, Error> {
        const BYTES_MAX: usize = 16 * 1024 * 1024;
        let mut line = Vec::new();
        self.read(|piece| {
            let end = piece.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
            let is_done = end.is_some() || line.len() > BYTES_MAX;
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(line)
    }

    /// Returns how it is compressed.
    ///
    /// # Errors
    /// An error of the vault or the file.
    pub fn packing(&self) -> Result<Option<Packing>, Error> {
        self.read(|_| Ok(ControlFlow::Break(())))
    }

    /// Writes its bytes, up to the length in its description: a session may continue meanwhile.
    ///
    /// # Errors
    /// An error of the vault, the file or `into`.
    pub fn write_to(&self, into: &mut dyn Write) -> Result<(), Error> {
        let mut left = self.content.get().map_or(u64::MAX, |content| content.bytes);
        self.read(|piece| {
            let fits = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            left -= fits as u64;
            into.write_all(&piece[..fits])?;
            Ok(ControlFlow::Continue(()))
        })
        .map(|_| ())
    }

    /// Hands over its bytes as the agent wrote them, until `each` breaks.
    pub(crate) fn pieces(&self, each: OnPiece<'_>) -> Result<(), Error> {
        self.read(|piece| Ok(each(piece))).map(|_| ())
    }

    /// Hands over its bytes as the agent wrote them; returns how they are compressed.
    fn read(
        &self,
        mut each: impl FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
    ) -> Result<Option<Packing>, Error> {
        let (vault, manifest, generation) = match &self.place {
            RolloutPlace::Vault { vault, manifest, generation } => (vault, manifest, *generation),
            RolloutPlace::Outside => return read_file(&self.path, each),
        };
        let mut outcome = Ok(());
        let read = read_unpacked(vault, manifest, generation, &mut |_, piece| match each(piece) {
            Ok(flow) => flow,
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        });
        let failed = |source| FileError::of("copy", &self.path, source);
        outcome.map_err(failed)?;
        read.map_err(|error| match error {
            GenerationError::Vault(error) => error.into(),
            GenerationError::Packing(error) => failed(error).into(),
        })
    }
}

/// Hands over the bytes of a file as its agent wrote them; returns how they are compressed.
fn read_file(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
) -> Result<Option<Packing>, Error> {
    const PIECE_BYTES: usize = 256 * 1024;
    let failed = |source| FileError::of("copy", path, source);
    let mut bytes = UnpackReader::new(open_regular(path, Links::Followed).map_err(failed)?);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = bytes.read(&mut piece).map_err(failed)?;
        if read == 0 || each(&piece[..read]).map_err(failed)?.is_break() {
            return Ok(bytes.packing());
        }
    }
}

/// Returns the name that a rollout with this name has in a bundle.
pub(crate) fn bundle_name(name: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(plain).collect()
}
