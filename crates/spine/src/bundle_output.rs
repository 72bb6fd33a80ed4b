//! Writes a bundle to a directory or a tar file. It has a temporary name until it is complete, and replaces nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::{
    Disk as _, DiskFile, RealDisk, StorePath, append_all, discard, give_name, sync_dir, sync_file,
};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::bundle::BundleEntry;
use crate::bundle_error::BundleError;
use crate::tar::TarWriter;
use crate::validator::Report;
use crate::{validate_directory, validate_tar};

/// The level of compression. With the version of zstd it decides the bytes of the output.
const LEVEL: i32 = 9;

/// The directory in a tar file that contains everything.
const TOP: &str = "bundle";

/// A bundle that is being written.
pub(super) struct BundleOutput {
    path: PathBuf,
    temporary: PathBuf,
    form: Form,
}

enum Form {
    Tar(Box<TarWriter<Encoder<'static, File>>>),
    Directory(RealDisk),
}

/// Returns true if a name asks for a tar file.
fn is_tar(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".tar.zst"))
}

/// Fails for a path to which no bundle can be written.
///
/// # Errors
/// [`BundleError::Name`] for the name of another format, [`BundleError::Exists`] if something is there.
pub fn check_bundle_path(path: &Path) -> Result<(), BundleError> {
    const ENDINGS: [&str; 9] =
        [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tzst", ".zst", ".zip"];
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_other = ENDINGS.iter().any(|ending| name.ends_with(ending)) && !is_tar(path);
    if is_other || path == Path::new("-") {
        return Err(BundleError::Name { path: path.to_owned() });
    }
    if path.symlink_metadata().is_ok() {
        return Err(BundleError::Exists { path: path.to_owned() });
    }
    Ok(())
}

impl BundleOutput {
    /// Creates the temporary file or directory next to the path.
    pub(super) fn begin(path: &Path) -> Result<Self, BundleError> {
        let name = path.file_name().ok_or(BundleError::NoName)?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.steno-{}", std::process::id()));
        let failed = BundleError::io("write", path);
        let form = if is_tar(path) {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
            let mut encoder = Encoder::new(made.map_err(failed)?, LEVEL).map_err(failed)?;
            encoder.include_checksum(true).map_err(failed)?;
            Form::Tar(Box::new(TarWriter::new(encoder)))
        } else {
            fs::create_dir(&temporary).map_err(failed)?;
            Form::Directory(RealDisk::create(&temporary).map_err(failed)?)
        };
        Ok(Self { path: path.to_owned(), temporary, form })
    }

    /// Adds a file; `fill` writes its bytes.
    pub(super) fn put<E: From<BundleError>>(
        &mut self,
        entry: &BundleEntry,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = BundleError::io("write", &self.path);
        match &mut self.form {
            Form::Tar(tar) => {
                tar.begin(&format!("{TOP}/{}", entry.name), entry.size_bytes).map_err(failed)?;
                fill(tar)
            }
            Form::Directory(disk) => {
                let path = StorePath::new(entry.name.clone());
                if path.dir() != StorePath::root() {
                    disk.make_dir(&path.dir()).map_err(failed)?;
                }
                let mut made = DiskWriter(disk.create(&path).map_err(failed)?);
                fill(&mut made)?;
                sync_file(&*made.0).map_err(failed)?;
                Ok(sync_dir(disk, &path.dir()).map_err(failed)?)
            }
        }
    }

    /// Checks the bundle and gives it its name. If that fails, nothing is left.
    pub(super) fn finish(self) -> Result<Report, BundleError> {
        let temporary = self.temporary.clone();
        let named = self.check_and_name();
        if named.is_err() {
            discard(&temporary);
        }
        named
    }

    fn check_and_name(self) -> Result<Report, BundleError> {
        let (path, temporary) = (self.path, self.temporary);
        let failed = BundleError::io("write", &path);
        let report = match self.form {
            Form::Tar(tar) => {
                let file = tar.finish().and_then(Encoder::finish).map_err(failed)?;
                file.sync_all().map_err(failed)?;
                // We wrote it, so it unpacks to its known size.
                let file = File::open(&temporary).and_then(Decoder::new).map_err(failed)?;
                validate_tar(file)
            }
            Form::Directory(disk) => validate_directory(&disk)?,
        };
        if !report.is_valid() {
            return Err(BundleError::WrittenInvalid);
        }
        give_name(&temporary, &path).map_err(|error| BundleError::naming(&path, error))?;
        Ok(report)
    }

    /// Deletes what was written.
    pub(super) fn give_up(self) {
        discard(&self.temporary);
    }
}

/// A file of a disk as [`Write`].
struct DiskWriter(Arc<dyn DiskFile>);

impl Write for DiskWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        append_all(&*self.0, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
