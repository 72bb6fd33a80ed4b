//! `steno run -- COMMAND…`: starts a command, forwards what it prints, and records it.
//!
//! This process forwards and writes a file in the store. A second process, started here, records that file. The command
//! does not depend on either the store or the recorder.

mod background;
mod child;
mod leader;
mod recorder;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use steno_capture::wrap::{SpoolQueue, SpoolReport, SpoolWriter};
use steno_disk::LockGuard;
use steno_journal::Journal;
use steno_model::wrap::{ProcessEnd, WrapHeader};
use steno_model::{Timestamp, with_causes};
use steno_recorder::wraps::RecordedWrap;

use self::child::{Streams, WrappedChild};
use self::recorder::RecorderProcess;
use crate::args::RunArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::recording::{StoreHere, warn};
use crate::settings::Settings;

/// The variable that tells the command its run.
const RUN_VARIABLE: &str = "STENO_RUN";
/// How long to wait for the recorder after a command that printed little, so that the next `steno` command finds the
/// run.
const RECORDER_WAIT_MAX: Duration = Duration::from_millis(250);
/// What counts as little.
const LITTLE_BYTES: u64 = 1024 * 1024;
/// The exit codes of a shell for a command that is not there or cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Does the work of the processes that `run` starts; `None` if this process is not one of them.
pub fn internal() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let kind = args.next()?;
    let rest: Vec<OsString> = args.collect();
    match kind.to_str()? {
        background::ARGUMENT => Some(background::main()),
        leader::ARGUMENT => Some(leader::main(&rest)),
        recorder::ARGUMENT => Some(recorder::main(&rest)),
        _ => None,
    }
}

pub fn run(args: &RunArgs, settings: &Settings) -> Outcome {
    let (wrap, queue) = (RecordedWrap::new(), SpoolQueue::default());
    let started = Timestamp::from_instant(jiff::Timestamp::now());
    let streams = Streams::of_this_process(args.input);
    let variables = [(RUN_VARIABLE, wrap.run().to_string())];
    // Before the store is touched: however slow it is, the command does not wait for it.
    let child = WrappedChild::start(&args.command, &variables, streams);
    let child = child.map_err(|error| cannot_start(args, &error))?;
    let end = std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let begun = OpenRecording::begin(args, settings, (wrap, started, streams));
            let (writer, recording) = begun.inspect_err(|failure| warn_of_nothing(failure, &queue)).ok()?;
            let store = recording.journal.store().clone();
            queue.watch_pause(move || store.is_paused(jiff::Timestamp::now()));
            recording.settle(&queue.write(writer));
            Some(())
        });
        let end = child.forward(&queue);
        match &end {
            Ok(end) => queue.end(*end),
            Err(_) => queue.discard(),
        }
        if recording.join().is_err() {
            warn("recording failed");
        }
        end
    })?;
    Ok(exit_of(end))
}

/// Says that nothing is recorded, and why.
fn warn_of_nothing(failure: &Failure, queue: &SpoolQueue) {
    queue.discard();
    let hint = failure.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    warn(&format!("NOTHING IS RECORDED: {}{hint}; the command runs anyway", failure.message));
}

fn cannot_start(args: &RunArgs, error: &std::io::Error) -> Failure {
    let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    let code = if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
    let failure = Failure::could_not(format!("cannot start `{program}`: {error}"));
    Failure { exit: Exit::Child(code), ..failure }
}

/// Returns the exit code of a command. If a signal ended it, this process ends in the same way.
fn exit_of(end: ProcessEnd) -> Exit {
    match end {
        ProcessEnd::Code(code) => Exit::Child(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        ProcessEnd::Signal(signal) => {
            let limit = getrlimit(Resource::Core);
            setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: limit.maximum }).ok();
            signal_hook::low_level::emulate_default_handler(signal).ok();
            Exit::Signal(u8::try_from(signal).unwrap_or(0))
        }
    }
}

/// A command that is being recorded.
struct OpenRecording {
    journal: Journal,
    wrap: RecordedWrap,
    guard: Box<dyn LockGuard>,
    recorder: Option<RecorderProcess>,
}

impl OpenRecording {
    /// Creates the file of a command, and starts its recorder.
    fn begin(
        args: &RunArgs,
        settings: &Settings,
        (wrap, started, streams): (RecordedWrap, Timestamp, Streams),
    ) -> Result<(SpoolWriter, Self), Failure> {
        let StoreHere { journal, dir, .. } = StoreHere::open(settings)?;
        Failure::unless_paused(journal.store())?;
        let header = WrapHeader {
            run: wrap.run(),
            name: args.name.as_deref().map(Into::into),
            command: args.command.iter().map(|word| word.to_string_lossy().as_ref().into()).collect(),
            cwd: dir.as_deref().map(Into::into),
            terminals: streams.terminals(),
            started,
        };
        let open = wrap.create(journal.store(), &header);
        let open = open.map_err(|error| Failure::could_not(with_causes(&error)))?;
        // Without a recorder the next `steno` archives the file.
        let recorder = RecorderProcess::start(wrap, &args.entries, settings);
        let recorder = recorder
            .inspect_err(|error| {
                warn(&format!(
                    "cannot start the recorder: {error}; `steno import` records the command later"
                ));
            })
            .ok();
        Ok((open.writer, Self { journal, wrap, guard: open.guard, recorder }))
    }

    /// Ends the recording of a complete file, and reports what is not in it.
    fn settle(self, report: &SpoolReport) {
        let Self { journal, wrap, guard, recorder } = self;
        warn_of_losses(report);
        wrap.free_reserve(journal.store());
        drop(guard);
        if let Some(recorder) = recorder.filter(|_| report.written < LITTLE_BYTES) {
            wait_for(recorder);
        }
    }
}

/// Waits a moment for the recorder. If that takes too long, the recorder continues alone.
fn wait_for(mut recorder: RecorderProcess) {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !recorder.has_ended() && begun.elapsed() < RECORDER_WAIT_MAX {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}

fn warn_of_losses(report: &SpoolReport) {
    if report.lost > 0 || report.is_untold {
        let why = report.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        warn(&format!("{} bytes were forwarded but not recorded{why}", report.lost));
    }
    if report.is_untold {
        warn("the end of the command is not recorded");
    }
}
