//! Feeds the validator from a directory: a spine in a store, any directory of segments, or a bundle that was unpacked.

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
/// What the system says; what is wrong with the spine is in the report.
pub fn validate_spine(store: &Store, thread: &ThreadId) -> Result<Report, Error> {
    check_stored(&**store.disk(), thread, store.is_spine_locked(thread)?)
}

pub(super) fn check_stored(disk: &dyn Disk, thread: &ThreadId, is_held: bool) -> Result<Report, Error> {
    let known = ExpectedSpine { thread: Some(thread.to_string()), is_ours: true, is_held, is_partial: false };
    Walk::begin(disk, StorePath::spine_of(thread), Layout::Spine, known).spine()
}

/// Checks a spine or a bundle in a directory, wherever it lies; one with a `bundle.json`, or a directory `spine`, is a
/// bundle. Nothing is changed.
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

/// Tells whether a directory is a bundle.
pub(super) fn layout_of(disk: &dyn Disk) -> Result<Layout, Error> {
    let root = StorePath::root();
    let names = disk.list(&root).map_err(|source| Error::io("list", &root, source))?;
    let is_bundle = names.iter().any(|name| name == BUNDLE_JSON || name == "spine");
    Ok(if is_bundle { Layout::Bundle } else { Layout::Spine })
}

/// A directory while it is gone through.
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
        // Looked for after the records, wherever it stands in the list: while somebody writes, an artifact is there before
        // the record that names it, and need not have been before that was read.
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

    /// Lists what lies in a directory below the root, which may be something else.
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
            // Gone since it was listed, or no name that can be opened.
            Ok(false) => {}
            Err(source) => match NotRegular::inside(&source) {
                Some(NotRegular { found }) => self.validator.is_no_file(name, found),
                None => return Err(Error::io("read", &path, source)),
            },
        }
        Ok(())
    }

    /// Reads a file up to where it ends now: whoever writes to it may be faster than we are.
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
