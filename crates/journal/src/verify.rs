//! Checks a transcript from its first byte to its last: lines, numbers, seals.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use steno_disk::{DiskFile, StorePath};
use steno_model::{Envelope, RunId, Seq};

use crate::error::{Damage, Error};
use crate::line_check::LineCheck;
use crate::names::RunFile;
use crate::scan::{Ending, scan};
use crate::seal::{Seal, scan_seals};
use crate::store::Store;

/// The result of a successful check of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The run, unless the file is empty.
    pub run: Option<RunId>,
    /// How many events.
    pub events: u64,
    /// How many bytes the events take.
    pub bytes: u64,
    /// How many seals match, including those passed in.
    pub seals: u64,
    /// How many bytes are sealed.
    pub sealed_bytes: u64,
    /// How many events have an unknown type.
    pub unknown_types: u64,
    /// How many blocks of messages have an unknown type.
    pub unknown_blocks: u64,
    /// What comes after the events.
    pub ending: Ending,
    /// What comes after the seals in the seals file.
    pub seals_ending: Ending,
}

/// Checks a run of a store against its seals, and against seals kept elsewhere.
///
/// # Errors
/// [`Error::Damaged`] or [`Error::SealBroken`] with the location, [`Error::NoSuchRun`], or an I/O error.
pub fn check_run(store: &Store, run: RunId, expected: Vec<Seal>) -> Result<CheckReport, Error> {
    check_run_with(store, run, expected, &mut |_| ())
}

/// Checks a run as [`check_run`] does, and passes the envelope of each valid line to `each`, in order.
///
/// # Errors
/// As [`check_run`]. The lines before the error have been passed on.
pub fn check_run_with(
    store: &Store,
    run: RunId,
    expected: Vec<Seal>,
    each: &mut dyn FnMut(&Envelope<'_>),
) -> Result<CheckReport, Error> {
    let path = RunFile::Transcript(run).path();
    let SealedFile { file, mut seals, ending: seals_ending } = open_with_seals(store, run)?;
    seals.extend(expected);
    match file {
        Some(file) => Ok(CheckReport {
            seals_ending,
            ..check_lines(file, &path, &CountedLines::new(Some(run), each), seals)?
        }),
        None => match seals.first() {
            Some(seal) => {
                Err(Error::SealBroken { path, differs: None, bytes: seal.bytes, why: "the file is missing" })
            }
            None => Err(Error::NoSuchRun { run }),
        },
    }
}

/// A transcript, if it exists, with its seals and what comes after them in the seals file.
struct SealedFile {
    file: Option<Arc<dyn DiskFile>>,
    seals: Vec<Seal>,
    ending: Ending,
}

/// Opens a transcript and reads its seals, and retries if the transcript is replaced meanwhile.
///
/// Seals are read before the file. A seal that is made while the file is read would cover no more than what will be
/// read.
fn open_with_seals(store: &Store, run: RunId) -> Result<SealedFile, Error> {
    const TRIES: u32 = 8;
    let (disk, path) = (&**store.disk(), RunFile::Transcript(run).path());
    let failed = |doing| {
        let path = &path;
        move |source| Error::io(doing, path, source)
    };
    let mut tried = 0;
    loop {
        let file = disk.open_read(&path).map_err(failed("open"))?;
        let found = scan_seals(disk, run);
        tried += 1;
        let opened = file.as_ref().map(|file| file.identity()).transpose().map_err(failed("access"))?;
        let named = disk.identity(&path).map_err(failed("access"))?;
        let is_same = match (&opened, &named) {
            (Some(opened), Some(named)) => opened.is_same_file(named),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same || tried == TRIES {
            let (seals, ending) = found?;
            return Ok(SealedFile { file, seals, ending });
        }
    }
}

/// Checks a transcript file anywhere; without a run, its first line names the run.
///
/// # Errors
/// As [`check_run`].
pub fn check_file(
    file: Arc<dyn DiskFile>,
    path: &StorePath,
    run: Option<RunId>,
    seals: Vec<Seal>,
) -> Result<CheckReport, Error> {
    check_lines(file, path, &CountedLines::new(run, &mut |_| ()), seals)
}

fn check_lines(
    file: Arc<dyn DiskFile>,
    path: &StorePath,
    lines: &CountedLines<'_>,
    seals: Vec<Seal>,
) -> Result<CheckReport, Error> {
    let found = scan(file, path, lines, seals)?;
    Ok(CheckReport {
        run: lines.run.get(),
        events: found.good.seq_last.map_or(0, Seq::get),
        bytes: found.good.len,
        seals: found.seals_held,
        sealed_bytes: found.sealed,
        unknown_types: lines.unknown_types.get(),
        unknown_blocks: lines.unknown_blocks.get(),
        ending: found.ending,
        seals_ending: Ending::Whole,
    })
}

/// Lines of one run, which the first line names, with counts of unknown types.
struct CountedLines<'a> {
    run: Cell<Option<RunId>>,
    unknown_types: Cell<u64>,
    unknown_blocks: Cell<u64>,
    /// Called with each envelope.
    each: RefCell<&'a mut dyn FnMut(&Envelope<'_>)>,
}

impl<'a> CountedLines<'a> {
    fn new(run: Option<RunId>, each: &'a mut dyn FnMut(&Envelope<'_>)) -> Self {
        let (unknown_types, unknown_blocks) = (Cell::new(0), Cell::new(0));
        Self { run: Cell::new(run), unknown_types, unknown_blocks, each: RefCell::new(each) }
    }
}

impl LineCheck for CountedLines<'_> {
    fn seq(&self, line: &[u8]) -> Result<Option<Seq>, Damage> {
        let envelope = Envelope::parse(line)?;
        match self.run.get() {
            Some(run) if run != envelope.run_id => {
                return Err(Damage::Foreign { found: envelope.run_id.to_string() });
            }
            Some(_) => {}
            None => self.run.set(Some(envelope.run_id)),
        }
        if envelope.event_type.known().is_none() {
            self.unknown_types.set(self.unknown_types.get() + 1);
        }
        let unknown_blocks = envelope.unknown_block_types().len() as u64;
        self.unknown_blocks.set(self.unknown_blocks.get() + unknown_blocks);
        (self.each.borrow_mut())(&envelope);
        Ok(Some(envelope.seq))
    }
}
