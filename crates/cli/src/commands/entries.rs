//! `steno entries`: prints transcript entries of archived sessions and agents' files as lines of a structured log.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use steno_journal::Error as JournalError;
use steno_library::{
    AgentFile, Error as LibraryError, FileError, FileReport, Files, Library, SessionSource, Tally, Target,
    TargetKind, warn_about_unread,
};
use steno_model::{RunId, with_causes};
use steno_recorder::entries::{EntryCollector, EntryLog, EntryOptions, EntryTime, StoredSource, read_stored};

use crate::args::EntriesArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, harmless_pieces};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &EntriesArgs, settings: &Settings) -> Outcome {
    let library = runs::open_library(settings)?;
    let (paths, sessions) = paths_and_sessions(args, settings, &library)?;
    let failed = Arc::<Mutex<Option<io::Error>>>::default();
    let out = BufWriter::new(io::stdout());
    let log = EntryLog::to_writer(StdoutLines { out, raw: args.raw_output, failed: Arc::clone(&failed) });
    let options = EntryOptions { emit_raw: !args.no_raw, prompt_name: args.name.clone() };
    let writer = EntryWriter { collector: EntryCollector::new(options), log, failed: Arc::clone(&failed) };
    let tally = writer.all(&paths, &sessions, &library);
    writer.during(|| writer.collector.stop());
    drop(writer);
    match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::could_not(format!("cannot write to stdout: {error}")));
        }
        Some(_) => return Ok(Exit::Done),
        None => {}
    }
    let tally = tally?;
    tally.check()?;
    if tally.known == 0 && !paths.is_empty() {
        let names: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Failure::nothing(format!("no readable agent's file in {}", names.join(", "))));
    }
    Ok(Exit::Done)
}

/// Separates paths from sessions of the store.
fn paths_and_sessions(
    args: &EntriesArgs,
    settings: &Settings,
    library: &Library,
) -> Result<(Vec<PathBuf>, Vec<RunId>), Failure> {
    let (mut paths, mut sessions) = (Vec::new(), Vec::new());
    for text in &args.what {
        let path = Path::new(text);
        let is_path = text.to_str().is_none_or(|text| text.contains(['/', '.']));
        if is_path || path.symlink_metadata().is_ok() {
            paths.push(path.to_owned());
            continue;
        }
        match library.resolve(&text.to_string_lossy(), TargetKind::Session) {
            Ok(Target::Session(session) | Target::Run(session)) => sessions.push(session),
            Ok(Target::Path(path)) => paths.push(path),
            Err(LibraryError::InvalidName { .. }) => paths.push(path.to_owned()),
            Err(error) => return Err(runs::unresolved(error, settings)),
        }
    }
    if !sessions.is_empty() {
        runs::need_store(settings)?;
    }
    Ok((paths, sessions))
}

/// Collects entries, and logs them to stdout.
struct EntryWriter {
    collector: EntryCollector,
    log: EntryLog,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl EntryWriter {
    /// Runs `work` while entries are logged. Warnings of the command still go to stderr.
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::subscriber::with_default(self.log.clone(), work)
    }

    /// Tells whether the reader of stdout has left.
    fn is_broken(&self) -> bool {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() || Output::is_abandoned()
    }

    fn all(&self, paths: &[PathBuf], sessions: &[RunId], library: &Library) -> Result<Tally, Failure> {
        for session in sessions {
            self.archived(*session, library)?;
        }
        if paths.is_empty() {
            return Ok(Tally::default());
        }
        let tally = Files::find_with_subagents(paths).each(|file| {
            let read = self.during(|| self.file(file))?;
            if let Some(read) = &read {
                warn_about_unread(read);
            }
            Ok(read)
        });
        Ok(tally?)
    }

    fn file(&self, file: AgentFile) -> Result<Option<FileReport>, FileError> {
        if file.surface().is_none() {
            return Ok(None);
        }
        let path = file.path().display().to_string();
        let mut sink = self.collector.source(Some(path.clone()), EntryTime::Record);
        let read = file.read(&mut sink, |_| self.is_broken());
        match &read {
            Ok(Some(read)) if read.is_cut => {
                self.collector.error(&format!("`{path}` ends inside compressed data"));
            }
            Ok(_) => {}
            // The entries before it are good.
            Err(error) => self.collector.error(&error.to_string()),
        }
        read
    }

    /// Logs the entries of an archived session, from the bytes that the vault has.
    fn archived(&self, session: RunId, library: &Library) -> Result<(), Failure> {
        let sources = library.session_sources(session)?;
        if sources.is_empty() {
            return Err(no_sources(session, library)?);
        }
        let vault = library.vault()?;
        for SessionSource { manifest, runs } in sources {
            let path = manifest.info.path.0.display().to_string();
            let mut sink = self.collector.source(Some(path.clone()), EntryTime::Record).of_runs(runs);
            let source = StoredSource { vault, manifest: &manifest };
            let read = self.during(|| read_stored(source, &mut sink, &|| self.is_broken()));
            if let Err(error) = read {
                let message = format!("cannot read the stored bytes of `{path}`: {}", with_causes(&error));
                self.during(|| self.collector.error(&message));
                return Err(Failure::could_not(message));
            }
        }
        Ok(())
    }
}

/// Returns the failure for a session without files, or for no session.
fn no_sources(session: RunId, library: &Library) -> Result<Failure, Failure> {
    if library.relations()?.runs_of(session).is_empty() {
        return Ok(JournalError::NoSuchRun { run: session }.into());
    }
    let message = format!("run {session} was not derived from an agent's file");
    Ok(Failure::nothing(message)
        .with_hint("only sessions recorded by `steno up`, `import`, `watch` or `app-server` have entries"))
}

/// Lines on stdout, with terminal controls escaped unless raw output is wanted. Keeps the first write error.
struct StdoutLines {
    out: BufWriter<io::Stdout>,
    raw: bool,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl StdoutLines {
    fn keep(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

impl Write for StdoutLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut outcome = Ok(());
        if self.raw {
            outcome = self.out.write_all(bytes);
        } else {
            harmless_pieces(&String::from_utf8_lossy(bytes), |piece| {
                if outcome.is_ok() {
                    outcome = self.out.write_all(piece.as_bytes());
                }
            });
        }
        self.keep(outcome);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for StdoutLines {
    fn drop(&mut self) {
        let outcome = self.out.flush();
        self.keep(outcome);
    }
}
