//! Feeds the validator from a directory: a spine in a store, any directory of segments, or an unpacked bundle.

use std::io;

use rustix::io::Errno;
use steno_disk::{Disk, NotRegular, StorePath, read_full};
use steno_journal::{ARTIFACTS_DIR, Error, Store};
use steno_model::ThreadId;

use super::bundle_json::BUNDLE_JSON;
use super::validator::{ExpectedSpine, Layout, Open, Report, Validator};

const PIECE_BYTES: usize = 256 * 1024;

/// Checks the spine of a thread in a store. Nothing is changed.
///
/// # Errors
///
/// An error of the system. Faults of the spine are in the report.
pub fn validate_spine(store: &Store, thread: &ThreadId) -> Result<Report, Error> {
    check_stored(&**store.disk(), thread, store.is_spine_locked(thread)?)
}

pub(super) fn check_stored(disk: &dyn Disk, thread: &ThreadId, is_held: bool) -> Result<Report, Error> {
    let known = ExpectedSpine { thread: Some(thread.to_string()), is_ours: true, is_held, is_partial: false };
    Walk::begin(disk, StorePath::spine_of(thread), Layout::Spine, known).spine()
}

/// Checks a spine or a bundle in any directory. One with a `bundle.json`, or a directory `spine`, is a bundle. Nothing
/// is changed.
///
/// # Errors
/// As [`validate_spine`].
pub fn validate_directory(disk: &dyn Disk) -> Result<Report, Error> {
    let layout = layout_of(disk)?;
    let walk = Walk::begin(disk, StorePath::root(), layout, ExpectedSpine::default());
    match layout {
        Layout::Spine => walk.spine(),
        Layout::Bundle => walk.bundle(),
    }
}

/// Returns the layout of a directory: that of a spine or of a bundle.
pub(super) fn layout_of(disk: &dyn Disk) -> Result<Layout, Error> {
    let root = StorePath::root();
    let names = disk.list(&root).map_err(|source| Error::io("list", &root, source))?;
    let is_bundle = names.iter().any(|name| name == BUNDLE_JSON || name == "spine");
    Ok(if is_bundle { Layout::Bundle } else { Layout::Spine })
}

/// A directory that is being read.
struct Walk<'a> {
    disk: &'a dyn Disk,
    root: StorePath,
    validator: Validator,
    piece: Vec<u8>,
}

impl<'a> Walk<'a> {
    fn begin(disk: &'a dyn Disk, root: StorePath, layout: Layout, known: ExpectedSpine) -> Self {
        Self { disk, root, validator: Validator::new(layout, known), piece: vec![0; PIECE_BYTES] }
    }

    fn spine(mut self) -> Result<Report, Error> {
        let names = self.names("")?;
        for name in names.iter().filter(|name| *name != ARTIFACTS_DIR) {
            self.file(name)?;
        }
        // Artifacts are read after the records. A writer writes an artifact before the record that names it, so every
        // artifact of the records that were read exists by now.
        self.files_in(ARTIFACTS_DIR)?;
        Ok(self.validator.finish())
    }

    fn bundle(mut self) -> Result<Report, Error> {
        for name in self.names("")? {
            match name.as_str() {
                "spine" | "rollout" | ARTIFACTS_DIR => self.files_in(&name)?,
                _ => self.file(&name)?,
            }
        }
        Ok(self.validator.finish())
    }

    /// Lists the names in a directory below the root; reports it if it is not a directory.
    fn names(&mut self, dir: &str) -> Result<Vec<String>, Error> {
        let path = if dir.is_empty() { self.root.clone() } else { self.root.below(dir) };
        match self.disk.list(&path) {
            Ok(names) => Ok(names),
            Err(error) if !dir.is_empty() && is_no_directory(&error) => {
                self.validator.is_no_file(dir, "not a directory, or a link");
                Ok(Vec::new())
            }
            Err(source) => Err(Error::io("list", &path, source)),
        }
    }

    fn files_in(&mut self, dir: &str) -> Result<(), Error> {
        for name in self.names(dir)? {
            self.file(&format!("{dir}/{name}"))?;
        }
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<(), Error> {
        let Some(mut open) = self.validator.open(name) else { return Ok(()) };
        let path = self.root.below(name);
        match self.read(&path, &mut open) {
            Ok(true) => self.validator.close(open),
            // Deleted since it was listed, or a name that cannot be opened.
            Ok(false) => {}
            Err(source) => match NotRegular::inside(&source) {
                Some(NotRegular { found }) => self.validator.is_no_file(name, found),
                None => return Err(Error::io("read", &path, source)),
            },
        }
        Ok(())
    }

    /// Reads a file up to its current end, since a writer may be faster than this reader.
    fn read(&mut self, path: &StorePath, open: &mut Open) -> io::Result<bool> {
        let Some(file) = self.disk.open_read(path)? else { return Ok(false) };
        let end = file.identity()?.size_bytes;
        let mut offset = 0;
        while offset < end {
            let wanted = usize::try_from(end - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = read_full(&*file, &mut self.piece[..wanted], offset)?;
            if read == 0 {
                break;
            }
            self.validator.push(open, &self.piece[..read]);
            offset += read as u64;
        }
        Ok(true)
    }
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOTDIR | Errno::LOOP))
}
