//! Where a bundle goes: a directory or an archive, under another name until it is whole, and never over anything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, RenameFlags};
use steno_disk::{Disk as _, DiskFile, RealDisk, StorePath, append_all, sync_dir, sync_file};
use steno_spine::{BundleEntry, Report, TarWriter, validate_directory};
use zstd::stream::write::Encoder;

use super::validate::validate_file;
use crate::failure::{Failure, cannot};

/// How hard zstd tries; with the version of zstd it decides which bytes come out.
const LEVEL: i32 = 9;

/// The directory that everything in an archive lies in.
const TOP: &str = "bundle";

/// A bundle that is being written.
pub struct BundleOutput {
    path: PathBuf,
    temporary: PathBuf,
    form: Form,
}

enum Form {
    Archive(Box<TarWriter<Encoder<'static, File>>>),
    Directory(RealDisk),
}

/// Tells whether a name asks for an archive.
pub fn is_archive(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".tar.zst"))
}

/// Fails for a name that asks for something which is not written.
pub fn check_name(path: &Path) -> Result<(), Failure> {
    const ENDINGS: [&str; 9] =
        [".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tzst", ".zst", ".zip"];
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_other = ENDINGS.iter().any(|ending| name.ends_with(ending)) && !is_archive(path);
    if !is_other && path != Path::new("-") {
        return Ok(());
    }
    let message = format!("a bundle cannot be written to `{}`", path.display());
    Err(Failure::usage(message).with_hint("name a file that ends in `.tar.zst`, or a directory"))
}

impl BundleOutput {
    /// Begins beside the place that the bundle will have.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let name =
            path.file_name().ok_or_else(|| Failure::usage("the output has no name"))?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.steno-{}", std::process::id()));
        let failed = |error: io::Error| cannot("write", path, &error);
        let form = if is_archive(path) {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
            let mut encoder = Encoder::new(made.map_err(failed)?, LEVEL).map_err(failed)?;
            encoder.include_checksum(true).map_err(failed)?;
            Form::Archive(Box::new(TarWriter::new(encoder)))
        } else {
            fs::create_dir(&temporary).map_err(failed)?;
            Form::Directory(RealDisk::create(&temporary).map_err(failed)?)
        };
        Ok(Self { path: path.to_owned(), temporary, form })
    }

    /// Puts a file in; `fill` writes its bytes.
    pub fn put(
        &mut self,
        entry: &BundleEntry,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot("write", &self.path, &error);
        match &mut self.form {
            Form::Archive(tar) => {
                tar.begin(&format!("{TOP}/{}", entry.name), entry.size_bytes).map_err(failed)?;
                fill(tar)
            }
            Form::Directory(disk) => {
                let path = StorePath::new(entry.name.clone());
                if path.dir() != StorePath::root() {
                    disk.make_dir(&path.dir()).map_err(failed)?;
                }
                let mut made = Appending(disk.create(&path).map_err(failed)?);
                fill(&mut made)?;
                sync_file(&*made.0).map_err(failed)?;
                sync_dir(disk, &path.dir()).map_err(failed)
            }
        }
    }

    /// Checks what was written, and gives it its name; nothing is left behind where that fails.
    pub fn finish(self) -> Result<Report, Failure> {
        let temporary = self.temporary.clone();
        let named = self.check_and_name();
        if named.is_err() {
            discard(&temporary);
        }
        named
    }

    fn check_and_name(self) -> Result<Report, Failure> {
        let (path, temporary) = (self.path, self.temporary);
        let failed = |error: io::Error| cannot("write", &path, &error);
        let report = match self.form {
            Form::Archive(tar) => {
                let file = tar.finish().and_then(Encoder::finish).map_err(failed)?;
                file.sync_all().map_err(failed)?;
                validate_file(&temporary)?
            }
            Form::Directory(disk) => validate_directory(&disk)?,
        };
        if !report.is_valid() {
            return Err(Failure::could_not("the written bundle is not valid, and was removed")
                .with_hint("`steno spine validate` checks the spine itself"));
        }
        give_name(&temporary, &path)?;
        Ok(report)
    }

    /// Takes away what was written so far.
    pub fn give_up(self) {
        discard(&self.temporary);
    }
}

/// Gives something that is whole the name that it was made for, unless there is something of that name.
pub fn give_name(temporary: &Path, path: &Path) -> Result<(), Failure> {
    let named = rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE);
    named.map_err(|error| match error {
        rustix::io::Errno::EXIST => in_the_way(path),
        error => cannot("name", path, &error.into()),
    })?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| cannot("sync the directory of", path, &error))
}

pub fn in_the_way(path: &Path) -> Failure {
    Failure::nothing(format!("`{}` already exists; nothing was written", path.display()))
        .with_hint("use a name with `-o` that does not exist yet")
}

pub fn discard(temporary: &Path) {
    // Best effort: what stays has a name that nobody takes for a bundle.
    let removed = if temporary.is_dir() { fs::remove_dir_all(temporary) } else { fs::remove_file(temporary) };
    removed.ok();
}

/// A file of a disk as something to write to.
struct Appending(Arc<dyn DiskFile>);

impl Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        append_all(&*self.0, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
