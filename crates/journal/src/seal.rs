//! Seals: lines that certify a prefix of a transcript.

use std::cell::RefCell;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steno_disk::{Disk, StorePath};
use steno_model::{RunId, Seq};

use crate::error::{Damage, Error};
use crate::line_check::LineCheck;
use crate::names::RunFile;
use crate::scan::{Ending, scan};
use crate::sidecar;

/// A checkpoint: the first `bytes` bytes of a run's transcript end with event `seq_last` and have this hash.
///
/// Written only after those bytes were synced, so it also shows that they were durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The run, as text, so that seals of several runs can be kept in one file.
    pub run_id: String,
    /// How many bytes it covers.
    pub bytes: u64,
    /// The number of the last event in them.
    pub seq_last: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
    /// When the seal was made.
    pub time: String,
}

impl Seal {
    pub(crate) fn new(run: RunId, prefix: &Prefix, time: jiff::Timestamp) -> Self {
        Self {
            run_id: run.to_string(),
            bytes: prefix.len,
            seq_last: prefix.seq_last.map_or(0, Seq::get),
            sha256: hex(&prefix.hash),
            time: steno_model::Timestamp::from_instant(time).to_string(),
        }
    }

    /// Returns the seal as a line of JSON, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        sidecar::json_line(self)
    }

    /// Reads one line.
    ///
    /// # Errors
    /// serde's message, when it is not a seal.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

/// A good beginning of a file: its length, last number and hash.
#[derive(Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) len: u64,
    pub(crate) seq_last: Option<Seq>,
    pub(crate) hash: Sha256,
}

impl Prefix {
    /// Adds a line, passed without its newline.
    pub(crate) fn push_line(&mut self, seq: Option<Seq>, line: &[u8]) {
        self.push_written(seq, line);
        self.push_written(None, b"\n");
    }

    /// Adds bytes as they were written, including the newline.
    pub(crate) fn push_written(&mut self, seq: Option<Seq>, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.hash.update(bytes);
        self.seq_last = seq.or(self.seq_last);
    }
}

/// Returns the lower-case hex of a hash, which can be continued.
pub(crate) fn hex(hash: &Sha256) -> String {
    HEXLOWER.encode(&hash.clone().finalize())
}

/// Compares seals with a file while it is read from its beginning.
pub(crate) struct SealCheck<'a> {
    path: &'a StorePath,
    rest: std::iter::Peekable<std::vec::IntoIter<Seal>>,
    /// How many bytes the last matching seal covers.
    pub(crate) sealed: u64,
    /// How many seals held.
    pub(crate) held: u64,
}

impl<'a> SealCheck<'a> {
    pub(crate) fn new(path: &'a StorePath, mut seals: Vec<Seal>) -> Self {
        seals.sort_by_key(|seal| seal.bytes);
        Self { path, rest: seals.into_iter().peekable(), sealed: 0, held: 0 }
    }

    /// Returns the error for a broken seal, with the latest possible position of the first changed byte, since a hash
    /// does not tell.
    fn broken(&self, seal: &Seal, why: &'static str, end: Option<u64>) -> Error {
        let differs = end.map(|end| self.sealed..end);
        Error::SealBroken { path: self.path.clone(), differs, bytes: seal.bytes, why }
    }

    /// Compares the seals that end where `prefix` ends.
    pub(crate) fn at(&mut self, prefix: &Prefix) -> Result<(), Error> {
        while let Some(seal) = self.rest.next_if(|seal| seal.bytes <= prefix.len) {
            if seal.bytes < prefix.len {
                return Err(self.broken(&seal, "it ends within a line", Some(seal.bytes)));
            }
            if seal.sha256 != hex(&prefix.hash) {
                return Err(self.broken(&seal, "the hash of the bytes differs", Some(seal.bytes)));
            }
            if seal.seq_last != prefix.seq_last.map_or(0, Seq::get) {
                return Err(self.broken(&seal, "the number of the last event differs", None));
            }
            self.sealed = seal.bytes;
            self.held += 1;
        }
        Ok(())
    }

    /// Ends the comparison: a seal over more bytes than that is broken.
    pub(crate) fn finish(&mut self, end: &Prefix) -> Result<(), Error> {
        match self.rest.next() {
            Some(seal) => Err(self.broken(&seal, "the file is shorter", Some(end.len + 1))),
            None => Ok(()),
        }
    }
}

/// Reads the seals of a run; a missing file has none. A torn tail of that file was never a seal.
///
/// # Errors
/// [`Error::Damaged`] when a whole line is not a seal of this run and no crash can have left it.
pub fn read_seals(disk: &dyn Disk, run: RunId) -> Result<Vec<Seal>, Error> {
    Ok(scan_seals(disk, run)?.0)
}

/// Reads the seals of a run, and returns what comes after them in their file.
pub(crate) fn scan_seals(disk: &dyn Disk, run: RunId) -> Result<(Vec<Seal>, Ending), Error> {
    scan_seals_in(disk, &RunFile::Seals(run).path(), run)
}

/// Reads the seals of a run from any file.
pub(crate) fn scan_seals_in(
    disk: &dyn Disk,
    path: &StorePath,
    run: RunId,
) -> Result<(Vec<Seal>, Ending), Error> {
    let Some(file) = disk.open_read(path).map_err(|source| Error::io("open", path, source))? else {
        return Ok((Vec::new(), Ending::Whole));
    };
    let lines = SealLines { run: run.to_string(), seals: RefCell::default() };
    let found = scan(file, path, &lines, Vec::new())?;
    Ok((lines.seals.into_inner(), found.ending))
}

/// Lines of a run's seals, kept as they are read.
struct SealLines {
    run: String,
    seals: RefCell<Vec<Seal>>,
}

impl LineCheck for SealLines {
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
        let seal = Seal::parse(&String::from_utf8_lossy(line))
            .map_err(|reason| steno_model::Error::NotJson { reason })?;
        if seal.run_id != self.run {
            return Err(Damage::Foreign { found: seal.run_id });
        }
        self.seals.borrow_mut().push(seal);
        Ok(None)
    }
}
