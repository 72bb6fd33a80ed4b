//! The recorder: a process of its own that archives the file of a running command.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use steno_capture::packing::UnpackReader;
use steno_disk::LockGuard;
use steno_journal::Journal;
use steno_recorder::sources::{
    FileGrowth, GrowingFile, SourceLocations, SourceRecorder, SourceRecorderOptions,
};
use steno_recorder::wraps::RecordedWrap;
use uuid::Uuid;

use crate::args::{EntriesFileArgs, Global};
use crate::failure::{Exit, Failure};
use crate::recording::{self, EntriesLog};
use crate::settings::Settings;
use crate::{connections, runs, wraps};

/// The first argument of the process.
pub const ARGUMENT: &str = "__wrap-recorder";

/// The recorder leaves the processor to the command.
const NICENESS: i32 = 19;
/// How long to wait for more: at first, and at most.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_millis(160);
/// A command that prints more than this in the time of a look is in a rush. The recorder would take processor and disk
/// from it, and waits, but not longer than this in total.
const RUSH_BYTES: u64 = 2 * 1024 * 1024;
const RUSH_LOOK: Duration = Duration::from_millis(40);
const RUSH_WAIT_MAX: Duration = Duration::from_secs(10);

/// A recorder that was started.
pub struct RecorderProcess(Child);

impl RecorderProcess {
    /// Starts the recorder of a command. It has none of our streams.
    pub fn start(
        wrap: RecordedWrap,
        entries: &EntriesFileArgs,
        settings: &Settings,
    ) -> std::io::Result<Self> {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let config = settings.file.clone().filter(|_| settings.file_named).map(absolute).unwrap_or_default();
        let entries = entries.path(settings).map(absolute).unwrap_or_default();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ARGUMENT).arg(wrap.id.to_string()).arg(absolute(settings.store.value.clone()));
        command.arg(config).arg(entries);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        command.spawn().map(Self)
    }

    /// Tells whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

/// Runs the recorder.
pub fn main(args: &[OsString]) -> ExitCode {
    // A signal of the terminal is not for us, and neither is the end of the shell.
    rustix::process::setsid().ok();
    rustix::process::nice(NICENESS).ok();
    let outcome = RecorderArgs::parse(args).and_then(RecorderArgs::record);
    let exit = outcome.err().map_or(Exit::Done, |failure| failure.exit);
    ExitCode::from(exit.code())
}

struct RecorderArgs {
    wrap: RecordedWrap,
    settings: Settings,
    entries: EntriesFileArgs,
}

impl RecorderArgs {
    fn parse(args: &[OsString]) -> Result<Self, Failure> {
        let [id, store, config, entries] = args else { return Err(Failure::usage("wrong arguments")) };
        let id = Uuid::try_parse_ascii(id.as_bytes()).map_err(|_| Failure::usage("wrong id"))?;
        let path = |text: &OsString| Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty());
        let (store, config) = (path(store), path(config));
        let global = Global { store, config, demo: false, color: None, verbose: false };
        let settings = Settings::load(&global, None, &|name| std::env::var_os(name))?;
        Ok(Self { wrap: RecordedWrap { id }, settings, entries: EntriesFileArgs { file: path(entries) } })
    }

    fn record(self) -> Result<(), Failure> {
        let journal =
            Journal::new(runs::make_store(&self.settings)?, recording::journal_options(&self.settings));
        let entries = EntriesLog::open(&self.entries, &self.settings).unwrap_or_default();
        let done = match &entries {
            Some(log) => log.collecting(|| self.follow(&journal, Some(log))),
            None => self.follow(&journal, None),
        };
        if done? && !journal.store().is_paused(jiff::Timestamp::now()) {
            wraps::import_leftover_wraps(&journal, &self.settings);
            connections::import_leftover_connections(&journal, &self.settings);
        }
        Ok(())
    }

    /// Records the file until nobody writes it any more, and removes it. Returns whether all of it was recorded.
    fn follow(&self, journal: &Journal, entries: Option<&EntriesLog>) -> Result<bool, Failure> {
        let path = self.settings.store.value.canonicalize()?.join(self.wrap.path().as_str());
        let entries = entries.map(|log| log.collector.clone());
        let options = SourceRecorderOptions { entries, ..SourceRecorderOptions::default() };
        let mut recorder = SourceRecorder::open(journal.clone(), options).map_err(recording::failure)?;
        let mut growth = Growth {
            wrap: self.wrap,
            journal,
            path: &path,
            guard: None,
            wait: WAIT_MIN,
            size: 0,
            rush: Rush::new(),
        };
        // The first output shows the session, which may have been forgotten.
        while !growth.has_output() && growth.wait() == GrowingFile::Open {}
        let listing = SourceLocations { given: vec![path.clone()], ..SourceLocations::default() }.list();
        let Some(file) = listing.files.first() else { return Ok(false) };
        let done = loop {
            match recorder.record_growing(file, &mut growth) {
                Err(error) if error.is_forgotten() => {
                    while growth.wait() == GrowingFile::Open {}
                    break true;
                }
                // Recording is paused.
                Ok(false) if growth.wait() == GrowingFile::Open => {}
                done => break done.map_err(recording::failure)?,
            }
        };
        recorder.settle().map_err(recording::failure)?;
        if done {
            self.wrap.remove(journal.store()).map_err(|error| Failure::could_not(error.to_string()))?;
        }
        Ok(done)
    }
}

/// Waits for the file to grow.
struct Growth<'a> {
    wrap: RecordedWrap,
    journal: &'a Journal,
    path: &'a Path,
    /// The lock of the file, once nobody writes it any more.
    guard: Option<Box<dyn LockGuard>>,
    wait: Duration,
    size: u64,
    rush: Rush,
}

/// How fast a file grows.
struct Rush {
    looked: Instant,
    size: u64,
    /// How long the recorder has waited.
    waited: Duration,
}

impl Rush {
    fn new() -> Self {
        Self { looked: Instant::now(), size: 0, waited: Duration::ZERO }
    }

    /// Tells whether the file has grown a lot since the last look, which is some time ago; `None` if it is not.
    fn look(&mut self, size: u64) -> Option<bool> {
        let elapsed = self.looked.elapsed();
        if elapsed < RUSH_LOOK {
            return None;
        }
        let limit = u64::try_from(u128::from(RUSH_BYTES) * elapsed.as_millis() / RUSH_LOOK.as_millis());
        let is_rush = size.saturating_sub(self.size) > limit.unwrap_or(u64::MAX);
        (self.looked, self.size) = (Instant::now(), size);
        Some(is_rush)
    }
}

impl Growth<'_> {
    /// Tells whether the file has more than its header, the first line.
    fn has_output(&self) -> bool {
        let file = std::fs::File::open(self.path).map(|file| BufReader::new(UnpackReader::new(file)));
        let has_output = file.and_then(|mut file| {
            file.skip_until(b'\n')?;
            Ok(!file.fill_buf()?.is_empty())
        });
        // A frame that is being written cannot be unpacked yet.
        has_output.unwrap_or(false)
    }

    fn size(&self) -> u64 {
        std::fs::metadata(self.path).map_or(0, |metadata| metadata.len())
    }
}

impl FileGrowth for Growth<'_> {
    /// Waits a moment; longer if the file has not grown for longer.
    fn wait(&mut self) -> GrowingFile {
        if self.guard.is_none() {
            self.guard = self.wrap.lock(self.journal.store()).unwrap_or_default();
        }
        if self.guard.is_some() {
            return GrowingFile::Complete;
        }
        let now = self.size();
        self.wait = if now == self.size { (self.wait * 2).min(WAIT_MAX) } else { WAIT_MIN };
        self.size = now;
        std::thread::sleep(self.wait);
        GrowingFile::Open
    }

    fn make_way(&mut self) {
        while self.guard.is_none()
            && self.rush.waited < RUSH_WAIT_MAX
            && self.rush.look(self.size()) == Some(true)
        {
            std::thread::sleep(RUSH_LOOK);
            self.rush.waited += RUSH_LOOK;
        }
    }
}
