//! `steno entries`: the transcript entries of an agent's own files, as lines of a structured log.

use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use steno_adapters::Surface;
use steno_library::{AgentFile, FileError, Files, Reading, warn_of_the_rest};
use steno_recorder::entries::{Discovered, EntryLog, EntryNumbers, EntryOptions, EntrySink, FirstPrompts};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::args::EntriesArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, harmless_pieces};

pub fn run(args: &EntriesArgs) -> Outcome {
    let failed = Arc::<Mutex<Option<io::Error>>>::default();
    let out = BufWriter::new(io::stdout());
    let log = EntryLog::to_writer(Lines { out, raw: args.raw_output, failed: Arc::clone(&failed) });
    let mut numbers = EntryNumbers::default();
    let is_broken =
        || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some() || Output::is_abandoned();
    let tally = Files::find(&args.paths).each(|file| {
        // Only while this runs: what the command itself has to say goes to stderr as always.
        let subscriber = tracing_subscriber::registry().with(log.clone());
        let logging = || log_file(file, args, &mut numbers, &is_broken);
        let read = tracing::subscriber::with_default(subscriber, logging)?;
        if let Some(read) = &read {
            warn_of_the_rest(read);
        }
        Ok(read)
    });
    drop(log);
    match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::could_not(format!("cannot write to stdout: {error}")));
        }
        Some(_) => return Ok(Exit::Done),
        None => {}
    }
    let tally = tally?;
    tally.check()?;
    if tally.known == 0 {
        let names: Vec<_> = args.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Failure::nothing(format!("no agent's file that we can read in {}", names.join(", "))));
    }
    Ok(Exit::Done)
}

fn log_file(
    file: AgentFile,
    args: &EntriesArgs,
    numbers: &mut EntryNumbers,
    is_broken: &dyn Fn() -> bool,
) -> Result<Option<Reading>, FileError> {
    let Some(surface) = file.surface() else { return Ok(None) };
    if args.name.is_none() {
        look_up_prompts(file.path(), numbers);
    }
    let options = EntryOptions { is_on: true, emit_raw: !args.no_raw, prompt_name: args.name.clone() };
    let mut sink = EntrySink::resume(options, std::mem::take(numbers));
    let path = file.path().to_owned();
    sink.discovered(&path.display().to_string(), what_is(&path, surface));
    let read = file.read(&mut sink, |_| is_broken());
    match &read {
        Ok(Some(read)) => {
            let unreadable = read.completeness.unreadable;
            if unreadable > 0 {
                sink.error(&format!("{unreadable} pieces of `{}` cannot be read", path.display()));
            }
            if read.is_cut {
                sink.error(&format!("`{}` ends inside of compressed data", path.display()));
            }
        }
        Ok(None) => {}
        // The entries before it are good.
        Err(failure) => sink.error(&failure.to_string()),
    }
    *numbers = sink.stop_to_resume().1;
    read
}

/// Looks for the file's first prompt, by which its entries are named.
fn look_up_prompts(path: &Path, numbers: &mut EntryNumbers) {
    /// How many pieces of a file are looked through.
    const PIECES_MAX: usize = 16;
    // What cannot be read is told when the entries are.
    let Ok(file) = AgentFile::open(path) else { return };
    let (mut prompts, pieces) = (FirstPrompts::default(), Cell::new(0));
    let is_enough = |prompts: &FirstPrompts| {
        pieces.set(pieces.get() + 1);
        prompts.is_found() || pieces.get() >= PIECES_MAX
    };
    if file.read(&mut prompts, is_enough).is_ok() {
        numbers.know(prompts);
    }
}

/// Tells a subagent's file by its name, which is how Claude Code marks it.
fn what_is(file: &Path, surface: Surface) -> Discovered {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if surface == Surface::ClaudeDisk && name.starts_with("agent-") {
        Discovered::Subagent
    } else {
        Discovered::Main
    }
}

/// Lines on stdout, harmless for a terminal unless asked for as they are. The first failure is kept, and ends it.
struct Lines {
    out: BufWriter<io::Stdout>,
    raw: bool,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl Lines {
    fn keep(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

impl Write for Lines {
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

impl Drop for Lines {
    fn drop(&mut self) {
        let outcome = self.out.flush();
        self.keep(outcome);
    }
}
