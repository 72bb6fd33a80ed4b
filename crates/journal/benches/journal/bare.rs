//! The bare limit: a loop that makes the same writes and syncs as the recorder made, and does nothing else.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::Outcome;
use crate::race::{Lap, elapsed};
use crate::traced_disk::{Call, Op};

/// A way to call write(2).
pub(crate) trait CallWrite: Fn(&File, &[u8]) -> io::Result<usize> + Sync {}

impl<F: Fn(&File, &[u8]) -> io::Result<usize> + Sync> CallWrite for F {}

/// Makes the calls of `ops` on fresh files in `dir` and returns how long that took.
///
/// Each of the `threads` serves its share of the files, in the order of the log; `write` is [`write()`] or another
/// way to do the same.
pub(crate) fn replay(dir: &Path, ops: &[Op], threads: usize, write: impl CallWrite) -> Outcome<Duration> {
    let files = ops.iter().map(|op| op.file + 1).max().unwrap_or(0);
    let files = (0..files).map(|number| open(dir, number)).collect::<Outcome<Vec<File>>>()?;
    // One buffer for all: it stays in the processor's cache, which makes the limit as high as it can be.
    let bytes_max = ops.iter().map(|op| if let Call::Write(bytes) = op.call { bytes } else { 0 }).max();
    let bytes = vec![b'x'; bytes_max.unwrap_or(0)];
    let shares: Vec<Vec<Op>> = (0..threads)
        .map(|share| ops.iter().copied().filter(|op| op.file % threads == share).collect())
        .collect();
    let barrier = Barrier::new(threads);
    let work = |share: &[Op]| {
        barrier.wait();
        Lap::of(|| serve(share, &files, &bytes, &write)).map(|lap| vec![lap])
    };
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = shares.iter().map(|share| scope.spawn(move || work(share))).collect();
        elapsed(running)
    })
}

fn serve(ops: &[Op], files: &[File], bytes: &[u8], write: &impl CallWrite) -> Outcome<()> {
    for op in ops {
        let file = &files[op.file];
        match op.call {
            Call::Write(count) if write(file, &bytes[..count])? == count => {}
            Call::Write(_) => return Err("the bare loop's write came out short".into()),
            Call::Sync => file.sync_data()?,
        }
    }
    Ok(())
}

/// Writes as every program does that uses the standard library.
pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    file.write(bytes)
}

/// Writes by a system call that the compiler puts into the loop itself, without a function around it.
#[inline]
pub(crate) fn write_inlined(file: &File, bytes: &[u8]) -> io::Result<usize> {
    rustix::io::write(file, bytes).map_err(|_| io::ErrorKind::Other.into())
}

/// Opens a file just as the journal does.
fn open(dir: &Path, number: usize) -> Outcome<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(dir.join(format!("bare-{number}")), flags, Mode::from_raw_mode(0o600))?.into())
}
