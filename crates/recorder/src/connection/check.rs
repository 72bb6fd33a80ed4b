//! Checks the file of a connection that is not imported yet: every line is a message, and their numbers increase.

use steno_adapters::codex::spine::LinePlace;
use steno_journal::Store;

use super::RecordedConnection;
use super::spool::SpoolContent;
use crate::spines::Error;

/// The content of a connection's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCheck {
    /// The number of messages.
    pub messages: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// How many bytes at the end are an incomplete message, left by a crash.
    pub torn_bytes: u64,
    /// Whether it is being recorded, so its end may be incomplete.
    pub is_held: bool,
    /// The first damage: its offset, and what is wrong.
    pub damage: Option<(u64, &'static str)>,
}

impl RecordedConnection {
    /// Reads the whole file and reports damage. There is no hash, so a changed letter inside a message is not detected.
    ///
    /// # Errors
    /// An I/O error.
    pub fn check(self, store: &Store) -> Result<ConnectionCheck, Error> {
        let mut check = ConnectionCheck { is_held: self.is_held(store)?, ..ConnectionCheck::default() };
        let mut ticket_last = 0;
        let mut recording = self.read(store)?;
        let end = recording.len()?;
        recording.each(end, &mut |line, LinePlace { offset, length }| {
            if offset != check.bytes {
                check.damage.get_or_insert((check.bytes, "not a message, but messages follow"));
            } else if line.ticket <= ticket_last {
                check
                    .damage
                    .get_or_insert((offset, "the number of a message is not greater than the one before"));
            }
            ticket_last = line.ticket;
            match &line.content {
                SpoolContent::Message { .. } => check.messages += 1,
                SpoolContent::Missing(missing) => ticket_last = missing.ticket_last,
                SpoolContent::Began(_)
                | SpoolContent::Ended(_)
                | SpoolContent::Http(_)
                | SpoolContent::HttpEnded => {}
            }
            check.bytes = offset + length + 1;
        })?;
        if !check.is_held {
            check.torn_bytes = self.size_bytes(store)?.saturating_sub(check.bytes);
        }
        Ok(check)
    }
}
