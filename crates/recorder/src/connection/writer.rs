//! Writes the lines of a connection's file. Messages that could not be written are counted, and the count is written as
//! soon as possible.

use std::io;

use steno_adapters::codex::spine::{Missing, WhyMissing};
use steno_model::Timestamp;

use super::live_entries::LiveEntries;
use super::spool::{McpBeginning, RecordedConnection, Spool, SpoolContent, SpoolLine};

/// How many gaps are listed individually.
const GAPS_MAX: usize = 100;

/// Messages of a connection that are not in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrecordedMessages {
    /// The number of messages.
    pub messages: u64,
    /// The first gaps.
    pub gaps: Vec<Missing>,
    /// How many more gaps there are.
    pub gaps_more: u64,
    /// Whether the last gap could not be noted in the file.
    pub is_untold: bool,
}

impl UnrecordedMessages {
    fn add(&mut self, missing: Missing) {
        self.messages += missing.messages();
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(missing);
        } else {
            self.gaps_more += 1;
        }
    }
}

/// The file of a connection, and what is missing from it. Each method that writes returns how long the file is then, or
/// `None` if nothing was written.
pub(super) struct SpoolWriter {
    spool: Spool,
    /// The first line of a connection to an MCP server, until it is written.
    beginning: Option<McpBeginning>,
    /// Messages that could not be written and are not yet noted in the file, with the time of the first.
    pending: Option<(Missing, Timestamp)>,
    unrecorded: UnrecordedMessages,
    /// Where entries go, if they are collected.
    entries: Option<LiveEntries>,
}

impl SpoolWriter {
    pub(super) fn new(spool: Spool) -> Self {
        let unrecorded = UnrecordedMessages::default();
        Self { spool, beginning: None, pending: None, unrecorded, entries: None }
    }

    /// Writes this beginning together with the first line.
    pub(super) fn with_beginning(self, beginning: Option<McpBeginning>) -> Self {
        Self { beginning, ..self }
    }

    /// Also makes entries from what is written.
    pub(super) fn collect_entries(&mut self, entries: LiveEntries) {
        self.entries = Some(entries);
    }

    /// Returns the connection.
    pub(super) fn spooled(&self) -> RecordedConnection {
        self.spool.spooled()
    }

    /// Counts a message that must not be recorded. The count is written before the next recorded message.
    pub(super) fn leave_out(&mut self, left_out: Missing, time: Timestamp) -> Option<u64> {
        let len = match &mut self.pending {
            Some((missing, _)) if missing.why == left_out.why => {
                missing.go_on(&left_out);
                return None;
            }
            Some(_) => self.flush(),
            None => None,
        };
        match &mut self.pending {
            // It could not be written. The reason of the first message is kept.
            Some((missing, _)) => missing.go_on(&left_out),
            None => self.pending = Some((left_out, time)),
        }
        len
    }

    /// Writes a line, after the pending note about missing messages. If that fails, its messages count as missing too.
    pub(super) fn write(&mut self, line: SpoolLine<'static>, lost: &Missing) -> Option<u64> {
        let time = line.time.clone();
        let gap = matches!(line.content, SpoolContent::Missing(_)).then(|| lost.clone());
        match self.append_after_note(line) {
            Ok(len) => {
                if let Some(missing) = gap {
                    self.unrecorded.add(missing);
                }
                Some(len)
            }
            Err(error) => {
                if let Some((missing, _)) = &mut self.pending {
                    missing.go_on(lost);
                } else {
                    let error = Some(error.to_string());
                    self.pending =
                        Some((Missing { why: WhyMissing::NotWritten, error, ..lost.clone() }, time));
                }
                None
            }
        }
    }

    /// Writes a note of the recorder, if possible.
    pub(super) fn write_note(&mut self, line: SpoolLine<'static>) -> Option<u64> {
        self.append_after_note(line).ok()
    }

    /// Ends the file. Returns the messages that are not in it.
    pub(super) fn finish(mut self) -> (UnrecordedMessages, Option<u64>) {
        let mut len = None;
        if let Some((missing, since)) = self.pending.take() {
            match self.append(&[SpoolLine::missing(since, missing.clone())]) {
                Ok(written) => len = Some(written),
                Err(_) => self.unrecorded.is_untold = true,
            }
            self.unrecorded.add(missing);
        }
        if let Some(entries) = self.entries.take() {
            entries.finish();
        }
        (self.unrecorded, len)
    }

    fn append_after_note(&mut self, line: SpoolLine<'static>) -> io::Result<u64> {
        let before = self.pending.clone().map(|(missing, since)| SpoolLine::missing(since, missing));
        let lines: Vec<SpoolLine<'_>> = before.into_iter().chain([line]).collect();
        let len = self.append(&lines)?;
        self.pending.take().into_iter().for_each(|(missing, _)| self.unrecorded.add(missing));
        Ok(len)
    }

    /// Writes the pending note about missing messages, if possible.
    fn flush(&mut self) -> Option<u64> {
        let (missing, since) = self.pending.take()?;
        let written = self.append(&[SpoolLine::missing(since.clone(), missing.clone())]).ok();
        if written.is_some() {
            self.unrecorded.add(missing);
        } else {
            self.pending = Some((missing, since));
        }
        written
    }

    /// Writes lines and makes entries from them.
    fn append(&mut self, lines: &[SpoolLine<'_>]) -> io::Result<u64> {
        let time = lines.first().map(|line| line.time.clone());
        let beginning = self.beginning.clone().zip(time).map(|(began, time)| SpoolLine::began(time, began));
        let len = self.spool.append(beginning.iter().chain(lines))?;
        self.beginning = None;
        if let Some(entries) = &mut self.entries {
            for line in beginning.iter().chain(lines) {
                entries.take(line);
            }
        }
        Ok(len)
    }
}
