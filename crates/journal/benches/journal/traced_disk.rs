//! The real disk, with a log of what the recorder does to its transcripts, so that a bare loop can do the same.
//!
//! Syncs are only done while the log runs. Otherwise opening and closing runs would keep the disk busy with work that
//! is not measured.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use steno_disk::{Disk, DiskFile, Identity, LockGuard, RealDisk, StorePath};
use steno_journal::RunFile;

use crate::Outcome;

/// One call that the recorder made on a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    /// Which transcript, counted in the order of opening.
    pub(crate) file: usize,
    /// What it did.
    pub(crate) call: Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A write of so many bytes.
    Write(usize),
    /// An fdatasync, logged where it begins: it answers for what was written by then.
    Sync,
}

#[derive(Clone)]
pub(crate) struct TracedDisk {
    real: Arc<RealDisk>,
    log: Arc<OpLog>,
}

impl TracedDisk {
    /// Opens a directory, with room for so many calls in the log.
    pub(crate) fn create(path: &Path, ops_max: usize) -> io::Result<Self> {
        Ok(Self { real: Arc::new(RealDisk::create(path)?), log: Arc::new(OpLog::new(ops_max)) })
    }

    /// Starts the log.
    pub(crate) fn start(&self) {
        self.log.running.store(true, Ordering::SeqCst);
    }

    /// Stops the log and returns it, in order.
    pub(crate) fn stop(&self) -> Outcome<Vec<Op>> {
        self.log.running.store(false, Ordering::SeqCst);
        let len = self.log.len.load(Ordering::SeqCst);
        let slots = self.log.slots.get(..len).ok_or("the log of disk calls is full")?;
        slots.iter().map(|slot| unpack(slot.load(Ordering::SeqCst))).collect()
    }
}

/// A list that threads append to with one atomic addition: a lock would affect the measurement.
struct OpLog {
    running: AtomicBool,
    files: AtomicUsize,
    len: AtomicUsize,
    slots: Vec<AtomicU64>,
}

impl OpLog {
    fn new(ops_max: usize) -> Self {
        let slots = (0..ops_max).map(|_| AtomicU64::new(0)).collect();
        Self { running: AtomicBool::new(false), files: AtomicUsize::new(0), len: AtomicUsize::new(0), slots }
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    fn push(&self, op: Op) {
        let at = self.len.fetch_add(1, Ordering::Relaxed);
        if let Some(slot) = self.slots.get(at) {
            slot.store(pack(op), Ordering::Relaxed);
        }
    }
}

/// Empty writes do not occur, so 0 bytes mean a sync.
fn pack(op: Op) -> u64 {
    let bytes = match op.call {
        Call::Write(bytes) => bytes,
        Call::Sync => 0,
    };
    (op.file as u64) << 32 | bytes as u64
}

fn unpack(slot: u64) -> Outcome<Op> {
    let bytes = usize::try_from(slot & u64::from(u32::MAX))?;
    let call = if bytes == 0 { Call::Sync } else { Call::Write(bytes) };
    Ok(Op { file: usize::try_from(slot >> 32)?, call })
}

impl Disk for TracedDisk {
    fn make_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.real.make_dir(dir)
    }

    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        let real = self.real.open_append(path)?;
        let transcript = matches!(RunFile::parse(path.as_str()), Some(RunFile::Transcript(_)));
        let number = transcript.then(|| self.log.files.fetch_add(1, Ordering::SeqCst));
        Ok(Arc::new(TracedFile { real, number, log: Arc::clone(&self.log) }))
    }

    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.real.open_read(path)
    }

    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        self.real.open_overwrite(path)
    }

    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        self.real.create(path)
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        self.real.remove(path)
    }

    fn remove_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.real.remove_dir(dir)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        self.real.rename(from, to)
    }

    fn sync_dir(&self, dir: &StorePath) -> io::Result<()> {
        if self.log.is_running() { self.real.sync_dir(dir) } else { Ok(()) }
    }

    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>> {
        self.real.list(dir)
    }

    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>> {
        self.real.identity(path)
    }

    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.real.try_lock(path)
    }

    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.real.try_share(path)
    }

    fn is_locked(&self, path: &StorePath) -> io::Result<bool> {
        self.real.is_locked(path)
    }

    fn host_path(&self, dir: &StorePath) -> Option<PathBuf> {
        self.real.host_path(dir)
    }
}

struct TracedFile {
    real: Arc<dyn DiskFile>,
    /// `None` for files that are not transcripts.
    number: Option<usize>,
    log: Arc<OpLog>,
}

impl TracedFile {
    fn push(&self, call: Call) {
        if let Some(file) = self.number.filter(|_| self.log.is_running()) {
            self.log.push(Op { file, call });
        }
    }
}

impl DiskFile for TracedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.real.append(bytes)?;
        self.push(Call::Write(written));
        Ok(written)
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.real.overwrite(bytes, offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.real.read_at(into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.push(Call::Sync);
        if self.log.is_running() { self.real.sync() } else { Ok(()) }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.real.truncate(len)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.real.identity()
    }
}
