//! Checks the file of a connection that waits to be archived: every line is a message, and their numbers increase.

use steno_adapters::codex::spine::LinePlace;
use steno_journal::Store;

use super::RecordedConnection;
use super::spool::SpoolContent;
use crate::spines::Error;

/// What the file of a connection holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCheck {
    /// How many messages there are.
    pub messages: u64,
    /// How many bytes they take.
    pub bytes: u64,
    /// How many bytes a crash has left that were never a message.
    pub torn_bytes: u64,
    /// Whether it is being recorded, so that its end is just not finished.
    pub is_held: bool,
    /// Where it is not as it was written, and how.
    pub damage: Option<(u64, &'static str)>,
}

impl RecordedConnection {
    /// Reads all that was said, and says whether it is as it was written. There is no hash of it: a letter that was changed
    /// is not found.
    ///
    /// # Errors
    /// What the system says.
    pub fn check(self, store: &Store) -> Result<ConnectionCheck, Error> {
        let mut heard = ConnectionCheck { is_held: self.is_held(store)?, ..ConnectionCheck::default() };
        let mut ticket_last = 0;
        let mut recording = self.read(store)?;
        let end = recording.len()?;
        recording.each(end, &mut |line, LinePlace { offset, length }| {
            if offset != heard.bytes {
                heard
                    .damage
                    .get_or_insert((heard.bytes, "what stands there is no message, and others follow"));
            } else if line.ticket <= ticket_last {
                heard.damage.get_or_insert((offset, "the number of a message is not above the one before"));
            }
            ticket_last = line.ticket;
            match &line.said {
                SpoolContent::Message { .. } => heard.messages += 1,
                SpoolContent::Missing(missing) => ticket_last = missing.ticket_last,
                SpoolContent::Ended(_) => {}
            }
            heard.bytes = offset + length + 1;
        })?;
        if !heard.is_held {
            heard.torn_bytes = self.size_bytes(store)?.saturating_sub(heard.bytes);
        }
        Ok(heard)
    }
}
