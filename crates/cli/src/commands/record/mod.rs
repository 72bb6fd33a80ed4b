//! `steno record`: events from stdin, one acknowledgement per line on stdout.
//!
//! One thread reads and writes to the journal, this one waits for the syncs and answers, so that many events are in
//! flight and every answer is in its place.

mod run_writer;

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use steno_journal::{Error as JournalError, Journal, Level, Options, PendingRecord};
use steno_library::parse_id;
use steno_model::json::JsonString;
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Draft, Error as ModelError, Seq, with_causes};
use steno_views::{count, thousands};

use self::run_writer::RunWriter;
use crate::args::RecordArgs;
use crate::failure::{Exit, Failure, Outcome, exit_of};
use crate::output::harmless_json;
use crate::runs;
use crate::settings::Settings;

/// How many events may wait for their answer; the reader then waits too.
const IN_FLIGHT_MAX: usize = 4_096;

/// A message from the reading thread to the answering thread.
enum RecordMessage {
    Appended(PendingRecord),
    /// The line was bad.
    Bad(ModelError),
    /// The journal refused.
    Refused(JournalError),
    /// The run could not be created; nothing more is read.
    NotOpened(JournalError),
    /// stdin has ended, or failed.
    End(io::Result<()>),
    /// A signal asked us to stop; the writer is closed.
    Signal(u8),
}

const UUID_HINT: &str = if cfg!(target_os = "macos") {
    "create one with `uuidgen`"
} else {
    "create one with `uuidgen` or `cat /proc/sys/kernel/random/uuid`"
};

pub fn run(args: &RecordArgs, settings: &Settings) -> Outcome {
    let run = parse_id(&args.run).map_err(|error| Failure::from(error).with_hint(UUID_HINT))?;
    let level = Level::from(settings.level.value);
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let options = Options { seal_idle: settings.seal_idle.value, ..Options::default() };
    let journal = Journal::new(runs::make_store(settings)?, options);
    Failure::unless_paused(journal.store())?;
    let writer = Arc::new(RunWriter::new(journal, run)?);
    let (sender, messages) = sync_channel(IN_FLIGHT_MAX);
    let signalled = Arc::new(AtomicU8::new(0));
    watch_signals(signals, Arc::clone(&writer), sender.clone(), Arc::clone(&signalled));
    let reading = Arc::clone(&writer);
    std::thread::spawn(move || {
        let ended = read_lines(io::stdin().lock(), |line| {
            let next = record_line(&reading, line, level);
            let goes_on = !matches!(next, RecordMessage::NotOpened(_));
            sender.send(next).is_ok() && goes_on
        });
        sender.send(RecordMessage::End(ended)).ok();
    });
    let mut answers = AnswerWriter::new(level);
    let outcome = answers.answer_all(&messages);
    if answers.answered == 0 && matches!(outcome, Ok(Exit::Done)) {
        open_without_a_line(&writer)?;
    }
    writer.close()?;
    // A signal that came together with the end of stdin is still what ended us.
    match signalled.load(Ordering::SeqCst) {
        0 => outcome,
        number => Ok(Exit::Signal(number)),
    }
}

/// Opens the run even without lines, so that a caller can test whether it can be recorded.
fn open_without_a_line(writer: &RunWriter) -> Result<(), Failure> {
    match writer.recorder() {
        // Closed by a signal, which is what the command will end with.
        Ok(_) | Err(JournalError::Closed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Closes the writer when a signal comes; what was accepted is then synced and sealed.
fn watch_signals(
    mut signals: Signals,
    writer: Arc<RunWriter>,
    sender: SyncSender<RecordMessage>,
    signalled: Arc<AtomicU8>,
) {
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let number = u8::try_from(signal).unwrap_or(0);
            signalled.store(number, Ordering::SeqCst);
            if let Err(error) = writer.close() {
                tracing::error!("{}", with_causes(&error));
            }
            sender.send(RecordMessage::Signal(number)).ok();
        }
    });
}

fn record_line(writer: &RunWriter, line: Result<&[u8], ModelError>, level: Level) -> RecordMessage {
    let draft = match line.and_then(|line| Draft::parse(line, writer.run())) {
        Ok(draft) => draft,
        Err(error) => return RecordMessage::Bad(error),
    };
    let _recording = match writer.enter() {
        Ok(recording) => recording,
        Err(error) => return RecordMessage::Refused(error),
    };
    let recorder = match writer.recorder() {
        Ok(recorder) => recorder,
        Err(error @ JournalError::Closed) => return RecordMessage::Refused(error),
        Err(error) => return RecordMessage::NotOpened(error),
    };
    match recorder.append(draft, level) {
        Ok(pending) => RecordMessage::Appended(pending),
        Err(error) => RecordMessage::Refused(error),
    }
}

/// Passes on every line without its newline; a line that is too long is an error. A last line without a newline
/// counts, because stdin has ended.
fn read_lines(
    mut input: impl BufRead,
    mut take: impl FnMut(Result<&[u8], ModelError>) -> bool,
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut input, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let goes_on = if line.last() == Some(&b'\n') {
            line.pop();
            take(Ok(&line))
        } else if line.len() == LINE_BYTES_MAX {
            let rest = input.skip_until(b'\n')?;
            take(Err(ModelError::TooLong { bytes: (line.len() + rest) as u64 }))
        } else {
            take(Ok(&line))
        };
        if !goes_on {
            return Ok(());
        }
    }
}

/// Writes the answers.
struct AnswerWriter {
    level: &'static str,
    stdout: io::BufWriter<io::Stdout>,
    /// Whether the reader of the answers has left. Events are recorded anyway.
    is_reader_gone: bool,
    exit: Exit,
    answered: u64,
    refused: u64,
}

impl AnswerWriter {
    fn new(level: Level) -> Self {
        let level = level.as_str();
        Self {
            level,
            stdout: io::BufWriter::new(io::stdout()),
            is_reader_gone: false,
            exit: Exit::Done,
            answered: 0,
            refused: 0,
        }
    }

    fn answer_all(&mut self, messages: &Receiver<RecordMessage>) -> Outcome {
        while let Some(next) = self.next(messages)? {
            match next {
                RecordMessage::Appended(pending) => {
                    if !pending.is_done() {
                        self.flush()?;
                    }
                    let outcome = pending.wait();
                    self.answer(outcome)?;
                }
                RecordMessage::Refused(error) => self.answer(Err(error))?,
                RecordMessage::NotOpened(error) => {
                    self.flush()?;
                    return Err(error.into());
                }
                RecordMessage::Bad(error) => {
                    self.worsen(Exit::CheckFailed);
                    self.write_error(&with_causes(&error))?;
                }
                RecordMessage::End(ended) => {
                    self.flush()?;
                    ended.map_err(|error| Failure::could_not(format!("cannot read stdin: {error}")))?;
                    return self.outcome();
                }
                RecordMessage::Signal(number) => {
                    self.flush()?;
                    return Ok(Exit::Signal(number));
                }
            }
        }
        self.outcome()
    }

    /// Returns the result of the command; the answers are for the sender, this is for the caller.
    fn outcome(&self) -> Outcome {
        if self.refused == 0 {
            return Ok(self.exit);
        }
        let message = format!("{} of {} refused", thousands(self.refused), count(self.answered, "line"));
        let failure = Failure { exit: self.exit, ..Failure::nothing(message) };
        Err(failure.with_hint("the answers on stdout say why"))
    }

    /// Returns the next message. If none is waiting, the answers so far are flushed first.
    fn next(&mut self, messages: &Receiver<RecordMessage>) -> Result<Option<RecordMessage>, Failure> {
        if let Ok(next) = messages.try_recv() {
            return Ok(Some(next));
        }
        self.flush()?;
        Ok(messages.recv().ok())
    }

    fn answer(&mut self, outcome: Result<Seq, JournalError>) -> Result<(), Failure> {
        match outcome {
            Ok(seq) => {
                let level = self.level;
                self.write(&format!("{{\"seq\":{seq},\"level\":\"{level}\"}}\n"))
            }
            Err(error) => {
                self.worsen(exit_of(&error));
                self.write_error(&with_causes(&error))
            }
        }
    }

    /// Keeps the worst exit code: disk errors before bad lines.
    fn worsen(&mut self, exit: Exit) {
        self.refused += 1;
        if exit.code() > self.exit.code() {
            self.exit = exit;
        }
    }

    /// Answers a line that was refused. Each line gets one answer, so its number is that of the answer.
    fn write_error(&mut self, message: &str) -> Result<(), Failure> {
        let message = format!("line {}: {message}", self.answered + 1);
        self.write(&format!("{{\"error\":{}}}\n", harmless_json(JsonString::from(message).as_raw())))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.answered += 1;
        let written = if self.is_reader_gone { Ok(()) } else { self.stdout.write_all(text.as_bytes()) };
        self.note_write(written)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let written = if self.is_reader_gone { Ok(()) } else { self.stdout.flush() };
        self.note_write(written)
    }

    fn note_write(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_reader_gone = true;
                Ok(())
            }
            Err(error) => Err(Failure::could_not(format!("cannot write answers to stdout: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<Result<Vec<u8>, ModelError>> {
        let mut got = Vec::new();
        read_lines(input, |line| {
            got.push(line.map(<[u8]>::to_vec));
            true
        })
        .unwrap();
        got
    }

    #[test]
    fn last_line_needs_no_newline() {
        assert_eq!(lines(b"a\n\nb"), [Ok(b"a".to_vec()), Ok(Vec::new()), Ok(b"b".to_vec())]);
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn too_long_line_is_skipped() {
        let mut input = vec![b'x'; LINE_BYTES_MAX + 10];
        input.extend_from_slice(b"\nshort\n");
        let got = lines(&input);
        assert_eq!(got[0], Err(ModelError::TooLong { bytes: (LINE_BYTES_MAX + 11) as u64 }));
        assert_eq!(got[1], Ok(b"short".to_vec()));
    }
}
