//! Checks of single lines, for each kind of file.

use steno_model::json::Fields;
use steno_model::{Envelope, RunId, Seq, SpineRecord, ThreadId};

use crate::error::Damage;

/// Reads from a line what recovery needs.
pub(crate) trait LineCheck {
    /// Returns the number of the line; `None` in files without numbers.
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage>;
}

/// Lines of one run's transcript.
pub(crate) struct TranscriptLines(pub(crate) RunId);

impl LineCheck for TranscriptLines {
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
        let envelope = Envelope::parse(line)?;
        if envelope.run_id == self.0 {
            Ok(Some(envelope.seq))
        } else {
            Err(Damage::Foreign { found: envelope.run_id.to_string() })
        }
    }
}

/// Lines of one thread's spine.
pub(crate) struct SpineLines(pub(crate) ThreadId);

impl LineCheck for SpineLines {
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
        let record = SpineRecord::parse(line)?;
        if record.thread_id == self.0 {
            Ok(Some(record.seq))
        } else {
            Err(Damage::Foreign { found: record.thread_id.to_string() })
        }
    }
}

/// Lines of seals and notes: JSON objects without numbers.
pub(crate) struct ObjectLines;

impl LineCheck for ObjectLines {
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
        let text = std::str::from_utf8(line)
            .map_err(|source| steno_model::Error::NotUtf8 { offset: source.valid_up_to() })?;
        Fields::parse(text)?;
        Ok(None)
    }
}
