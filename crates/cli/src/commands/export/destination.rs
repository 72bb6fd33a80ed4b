//! The destination of trajectories: a file, a file of lines, a directory, stdout; and the directory of media.
//!
//! A file gets its name when it is complete. Existing files are kept unless `--force` is given.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use steno_exports::atif::{MEDIA_DIR, MediaSink};
use steno_model::RunId;

use crate::failure::{Failure, cannot};
use crate::output::Output;

/// The destination of trajectories.
pub struct Destination {
    form: DestinationForm,
    /// Whether existing files may be overwritten.
    force: bool,
    /// How many trajectories were written.
    written: u64,
}

enum DestinationForm {
    /// One file for one trajectory, which is kept in memory until it is the only one.
    One {
        path: PathBuf,
        document: Option<String>,
    },
    /// One line for each.
    Lines {
        path: PathBuf,
        file: BufWriter<File>,
        temporary: TemporaryFile,
    },
    /// One file for each.
    Directory(PathBuf),
    Stdout,
}

impl Destination {
    /// Gets ready to write to what an argument names.
    pub fn open(path: &Path, force: bool) -> Result<Self, Failure> {
        let ending = path.extension().unwrap_or_default();
        let form = if path == Path::new("-") {
            DestinationForm::Stdout
        } else if path.is_dir() || (ending != "json" && ending != "jsonl") {
            fs::create_dir_all(path).map_err(|error| cannot("create the directory", path, &error))?;
            DestinationForm::Directory(path.to_owned())
        } else {
            check_free(path, force)?;
            let dir = dir_of(path);
            fs::create_dir_all(dir).map_err(|error| cannot("create the directory", dir, &error))?;
            if ending == "jsonl" {
                let (file, temporary) = TemporaryFile::create(path)?;
                DestinationForm::Lines { path: path.to_owned(), file: BufWriter::new(file), temporary }
            } else {
                DestinationForm::One { path: path.to_owned(), document: None }
            }
        };
        Ok(Self { form, force, written: 0 })
    }

    /// Returns where the media of trajectories go.
    pub fn media(&self) -> MediaDir {
        let base = match &self.form {
            DestinationForm::One { path, .. } | DestinationForm::Lines { path, .. } => {
                Some(dir_of(path).to_owned())
            }
            DestinationForm::Directory(path) => Some(path.clone()),
            DestinationForm::Stdout => None,
        };
        MediaDir { base, is_made: false, error: None }
    }

    /// Tells whether it is stdout, which takes nothing but trajectories.
    pub fn is_stdout(&self) -> bool {
        matches!(self.form, DestinationForm::Stdout)
    }

    /// Fails if a trajectory of this run cannot be written, before it is made.
    pub fn check(&self, run: RunId) -> Result<(), Failure> {
        match &self.form {
            DestinationForm::One { path, document: Some(_) } => Err(Failure::usage(format!(
                "`{}` can hold only one trajectory, and there are several",
                path.display()
            ))
            .with_hint("use a directory, or a file that ends in `.jsonl`")),
            DestinationForm::One { .. } | DestinationForm::Lines { .. } | DestinationForm::Stdout => Ok(()),
            DestinationForm::Directory(dir) => check_free(&file_of(dir, run), self.force),
        }
    }

    /// Writes a trajectory, and returns the file it is in.
    pub fn write(
        &mut self,
        run: RunId,
        json: String,
        output: &mut Output,
    ) -> Result<Option<PathBuf>, Failure> {
        self.written += 1;
        match &mut self.form {
            DestinationForm::Stdout => {
                output.raw_line(json.as_bytes());
                Ok(None)
            }
            DestinationForm::Lines { path, file, .. } => {
                let written = file.write_all(json.as_bytes()).and_then(|()| file.write_all(b"\n"));
                written.map_err(|error| cannot("write", path, &error))?;
                Ok(Some(path.clone()))
            }
            DestinationForm::One { path, document } => {
                *document = Some(json);
                Ok(Some(path.clone()))
            }
            DestinationForm::Directory(dir) => {
                let path = file_of(dir, run);
                write_file(&path, &json, self.force).map(|()| Some(path))
            }
        }
    }

    /// Writes the trajectory that is kept in memory, or names the file of lines; an empty one is not created.
    pub fn finish(self) -> Result<(), Failure> {
        match self.form {
            DestinationForm::One { path, document: Some(json) } => write_file(&path, &json, self.force),
            DestinationForm::Lines { path, mut file, temporary } if self.written > 0 => {
                file.flush().map_err(|error| cannot("write", &path, &error))?;
                temporary.name(&path, self.force)
            }
            DestinationForm::One { document: None, .. }
            | DestinationForm::Lines { .. }
            | DestinationForm::Directory(_)
            | DestinationForm::Stdout => Ok(()),
        }
    }
}

/// The directory of media files.
pub struct MediaDir {
    /// `None` if media cannot be written next to the trajectory.
    base: Option<PathBuf>,
    is_made: bool,
    error: Option<Failure>,
}

impl MediaDir {
    /// Fails if a file could not be written.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn write(&mut self, base: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        let whole = base.join(path);
        // It is named by its hash, so an existing file is the same.
        if fs::metadata(&whole).is_ok_and(|known| known.len() == bytes.len() as u64) {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_made, true) {
            let dir = base.join(MEDIA_DIR);
            fs::create_dir_all(&dir).map_err(|error| cannot("create the directory", &dir, &error))?;
        }
        let (mut file, temporary) = TemporaryFile::create(&whole)?;
        file.write_all(bytes).map_err(|error| cannot("write", &whole, &error))?;
        temporary.name(&whole, true)
    }
}

impl MediaSink for MediaDir {
    fn keep(&mut self, path: &str, bytes: &[u8]) -> bool {
        let Some(base) = self.base.clone() else { return false };
        match self.write(&base, path, bytes) {
            Ok(()) => true,
            Err(failure) => {
                self.error.get_or_insert(failure);
                false
            }
        }
    }
}

fn write_file(path: &Path, json: &str, force: bool) -> Result<(), Failure> {
    let (mut file, temporary) = TemporaryFile::create(path)?;
    let written = file.write_all(json.as_bytes()).and_then(|()| file.write_all(b"\n"));
    written.map_err(|error| cannot("write", path, &error))?;
    temporary.name(path, force)
}

fn file_of(dir: &Path, run: RunId) -> PathBuf {
    dir.join(format!("{run}.json"))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."))
}

fn check_free(path: &Path, force: bool) -> Result<(), Failure> {
    if force || path.symlink_metadata().is_err() { Ok(()) } else { Err(in_the_way(path)) }
}

fn in_the_way(path: &Path) -> Failure {
    Failure::nothing(format!("`{}` already exists", path.display())).with_hint("`--force` overwrites it")
}

/// An incomplete file under a temporary name; deleted unless it gets its real name.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create(path: &Path) -> Result<(File, Self), Failure> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = dir_of(path).join(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&temporary).map_err(|error| cannot("write", path, &error))?;
        Ok((file, Self(temporary)))
    }

    fn name(self, path: &Path, force: bool) -> Result<(), Failure> {
        if force {
            return fs::rename(&self.0, path).map_err(|error| cannot("write", path, &error));
        }
        // A hard link overwrites nothing, even in a race; not every file system has it.
        match fs::hard_link(&self.0, path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(in_the_way(path)),
            Err(_) => fs::rename(&self.0, path).map_err(|error| cannot("write", path, &error)),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may have its real name by now.
        fs::remove_file(&self.0).ok();
    }
}
