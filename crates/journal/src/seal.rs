//! Seals: lines that vouch for a prefix of a transcript.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use steno_model::{RunId, Seq};

use crate::disk::Disk;
use crate::error::Error;
use crate::lines::{Lines, Piece};
use crate::names::{RunFile, StorePath};
use crate::side;

/// A checkpoint: the first `bytes` bytes of a run's transcript end with event `seq_last` and have this hash.
///
/// Written only after those bytes were synced, so it also says that they survived.
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
        side::json_line(self)
    }

    /// Reads one line.
    ///
    /// # Errors
    /// serde's words, when it is no seal.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

/// A good beginning of a file: how long, up to which number, with which hash.
#[derive(Clone, Default)]
pub(crate) struct Prefix {
    pub(crate) len: u64,
    pub(crate) seq_last: Option<Seq>,
    pub(crate) hash: Sha256,
}

impl Prefix {
    /// Goes on past a line and its newline, given without it.
    pub(crate) fn push_line(&mut self, seq: Option<Seq>, line: &[u8]) {
        self.push_written(seq, line);
        self.push_written(None, b"\n");
    }

    /// Goes on past a line as it was written, newline included.
    pub(crate) fn push_written(&mut self, seq: Option<Seq>, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.hash.update(bytes);
        self.seq_last = seq.or(self.seq_last);
    }
}

/// Returns the lower-case hex of a hash, which may go on.
pub(crate) fn hex(hash: &Sha256) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in hash.clone().finalize() {
        write!(text, "{byte:02x}").expect("a String takes every write");
    }
    text
}

/// Compares seals with a file while it is read from its beginning.
pub(crate) struct SealCheck<'a> {
    path: &'a StorePath,
    rest: std::iter::Peekable<std::vec::IntoIter<Seal>>,
    /// How many bytes the last seal that held covers.
    pub(crate) sealed: u64,
    /// How many seals held.
    pub(crate) held: u64,
}

impl<'a> SealCheck<'a> {
    pub(crate) fn new(path: &'a StorePath, mut seals: Vec<Seal>) -> Self {
        seals.sort_by_key(|seal| seal.bytes);
        Self { path, rest: seals.into_iter().peekable(), sealed: 0, held: 0 }
    }

    fn broken(&self, seal: &Seal, why: &'static str) -> Error {
        Error::SealBroken { path: self.path.clone(), bytes: seal.bytes, why }
    }

    /// Compares the seals that end where `prefix` ends.
    pub(crate) fn at(&mut self, prefix: &Prefix) -> Result<(), Error> {
        while let Some(seal) = self.rest.next_if(|seal| seal.bytes <= prefix.len) {
            if seal.bytes < prefix.len {
                return Err(self.broken(&seal, "it ends inside a line"));
            }
            if seal.sha256 != hex(&prefix.hash) {
                return Err(self.broken(&seal, "the bytes have another hash"));
            }
            if seal.seq_last != prefix.seq_last.map_or(0, Seq::get) {
                return Err(self.broken(&seal, "the last event has another number"));
            }
            self.sealed = seal.bytes;
            self.held += 1;
        }
        Ok(())
    }

    /// Says that nothing more comes: a seal over more bytes than that is broken.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        match self.rest.next() {
            Some(seal) => Err(self.broken(&seal, "the file is shorter")),
            None => Ok(()),
        }
    }
}

/// Reads the seals of a run, none when there is no file. An unterminated last line was never a seal.
///
/// # Errors
/// [`Error::Damaged`] when a whole line is no seal of this run.
pub fn read_seals(disk: &dyn Disk, run: RunId) -> Result<Vec<Seal>, Error> {
    let path = RunFile::Seals(run).path();
    let Some(file) = disk.open_read(&path).map_err(|source| Error::io("open", &path, source))? else {
        return Ok(Vec::new());
    };
    let mut lines = Lines::new(file, 0);
    let mut seals = Vec::new();
    loop {
        let damaged = |offset, why: String| Error::Damaged {
            path: path.clone(),
            offset,
            why: steno_model::Error::NotJson { reason: why }.into(),
        };
        match lines.next().map_err(|source| Error::io("read", &path, source))? {
            Piece::Line { offset, bytes } => {
                let text = String::from_utf8_lossy(bytes);
                let seal = Seal::parse(&text).map_err(|why| damaged(offset, why))?;
                if seal.run_id != run.to_string() {
                    return Err(damaged(offset, "a seal of another run".to_owned()));
                }
                seals.push(seal);
            }
            Piece::End { .. } => return Ok(seals),
            Piece::TooLong { offset } => return Err(damaged(offset, "a line that is too long".to_owned())),
        }
    }
}
