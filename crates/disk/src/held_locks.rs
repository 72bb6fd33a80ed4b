//! Which files of this machine are locked, read from the system's list instead of trying each file.
//!
//! A list that may lack locks is not used: a process in a container is not told of locks outside of it, and a network file
//! system or overlayfs keeps locks that the list shows with another inode, or not at all.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;

use crate::whole;

/// The name of the namespace of processes that all others are in. The kernel's headers have the number.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// The length of the buffer for one read. The kernel gives at most a page.
const READ_BYTES: usize = 16 * 1024;

/// Returns the inodes with a lock of `flock` that excludes others, on all file systems. `None` if the list may lack locks of
/// files below the directory, or cannot be read.
pub(crate) fn exclusive(dir: impl AsFd) -> Option<HashSet<u64>> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    if namespace.to_str() != Some(FIRST_NAMESPACE) || !whole::is_local(dir) {
        return None;
    }
    let (mut inodes, is_one_read) = read().ok()?;
    if !is_one_read {
        // Between two reads the list may have moved under us, and a lock may have been passed over.
        inodes.extend(read().ok()?.0);
    }
    Some(inodes)
}

/// Reads the list once. Also returns whether one read was enough.
fn read() -> io::Result<(HashSet<u64>, bool)> {
    let mut file = File::open("/proc/locks")?;
    let (mut text, mut buffer, mut reads) = (Vec::new(), vec![0; READ_BYTES], 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..read]);
        reads += 1;
    }
    let text = String::from_utf8_lossy(&text);
    Ok((text.lines().filter_map(inode_of).collect(), reads <= 1))
}

/// Returns the inode of a line like `1: FLOCK  ADVISORY  WRITE 812 fe:00:5496861 0 EOF`. Locks of another kind, and those that
/// are waited for, have none.
fn inode_of(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let is_exclusive = words.next() == Some("FLOCK") && words.nth(1) == Some("WRITE");
    words.nth(1).filter(|_| is_exclusive)?.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exclusive_locks_of_flock_have_an_inode() {
        for (line, want) in [
            ("1: FLOCK  ADVISORY  WRITE 812 fe:00:5496861 0 EOF", Some(5_496_861)),
            ("12: FLOCK  ADVISORY  WRITE -1 00:1b:7 0 EOF", Some(7)),
            ("2: FLOCK  ADVISORY  READ 812 fe:00:5496861 0 EOF", None),
            ("1: -> FLOCK  ADVISORY  WRITE 813 fe:00:5496861 0 EOF", None),
            ("3: POSIX  ADVISORY  WRITE 812 fe:00:9 1073741826 1073742335", None),
            ("4: LEASE  ACTIVE    WRITE 812 fe:00:9 0 EOF", None),
            ("", None),
        ] {
            assert_eq!(inode_of(line), want, "{line}");
        }
    }
}
