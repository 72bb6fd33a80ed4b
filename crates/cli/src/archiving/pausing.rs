//! Whether recording is paused: a small file in the store that says until when.

use std::io;

use steno_disk::{Disk, StorePath, read_full, replace_file, sync_dir};

const TEXT_BYTES_MAX: usize = 64;

fn path() -> StorePath {
    StorePath::root().below("paused")
}

/// Pauses recording until a time, or until it is resumed.
pub fn pause(disk: &dyn Disk, until: Option<jiff::Timestamp>) -> io::Result<()> {
    let text = until.map_or_else(String::new, |until| until.to_string());
    replace_file(disk, &path(), format!("{text}\n").as_bytes())
}

/// Lets recording go on.
pub fn resume(disk: &dyn Disk) -> io::Result<()> {
    disk.remove(&path())?;
    sync_dir(disk, &StorePath::root())
}

/// Tells whether recording is paused. A file that cannot be read as one of ours pauses it: somebody wanted that.
pub fn is_paused(disk: &dyn Disk) -> bool {
    let Ok(opened) = disk.open_read(&path()) else { return true };
    let Some(file) = opened else { return false };
    let mut text = [0; TEXT_BYTES_MAX];
    let read = read_full(&*file, &mut text, 0).unwrap_or(0);
    let until = str::from_utf8(&text[..read]).unwrap_or_default().trim();
    until.parse::<jiff::Timestamp>().map_or(true, |until| jiff::Timestamp::now() < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_by_time_or_by_word() {
        let dir = tempfile::tempdir().unwrap();
        let disk = steno_disk::RealDisk::create(dir.path()).unwrap();
        assert!(!is_paused(&disk));
        pause(&disk, None).unwrap();
        assert!(is_paused(&disk));
        resume(&disk).unwrap();
        assert!(!is_paused(&disk));
        let now = jiff::Timestamp::now();
        pause(&disk, Some(now - jiff::SignedDuration::from_secs(1))).unwrap();
        assert!(!is_paused(&disk));
        pause(&disk, Some(now + jiff::SignedDuration::from_hours(1))).unwrap();
        assert!(is_paused(&disk));
    }
}
