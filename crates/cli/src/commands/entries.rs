//! `steno entries`: the transcript entries of an agent's own files, as lines of a structured log.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use steno_adapters::Surface;
use steno_recorder::entries::{Discovered, EntryLog, EntryOptions, EntrySink};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::args::EntriesArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::harmless_json;
use crate::provider_files;

pub fn run(args: &EntriesArgs) -> Outcome {
    let files = provider_files::find(&args.paths)?;
    let log = EntryLog::to_writer(Lines { out: BufWriter::new(io::stdout()), raw: args.raw_output });
    let mut known = 0_u64;
    // Only while this runs: what the command itself has to say goes to stderr as always.
    for file in &files {
        let logged =
            tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
                log_file(file, args)
            });
        known += u64::from(logged?);
    }
    if known == 0 {
        let names: Vec<_> = args.paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Failure::nothing(format!("no agent's file that we can read in {}", names.join(", "))));
    }
    Ok(Exit::Done)
}

fn log_file(file: &Path, args: &EntriesArgs) -> Result<bool, Failure> {
    let Some(surface) = provider_files::surface_of(file)? else { return Ok(false) };
    let options = EntryOptions { is_on: true, emit_raw: !args.no_raw, prompt_name: args.name.clone() };
    let mut sink = EntrySink::begin(options);
    sink.discovered(&file.display().to_string(), what_is(file, surface));
    match provider_files::read(file, &mut sink) {
        Ok(Some(read)) => {
            let unreadable = read.completeness.unreadable;
            if unreadable > 0 {
                sink.error(&format!("{unreadable} pieces of `{}` cannot be read", file.display()));
            }
        }
        Ok(None) => {}
        // The entries before it are good.
        Err(failure) => sink.error(&failure.message),
    }
    sink.stop();
    Ok(true)
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

/// Lines on stdout, harmless for a terminal unless asked for as they are.
struct Lines {
    out: BufWriter<io::Stdout>,
    raw: bool,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.raw {
            self.out.write_all(bytes)?;
        } else {
            self.out.write_all(harmless_json(&String::from_utf8_lossy(bytes)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
