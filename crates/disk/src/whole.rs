//! Whether this system can sync a whole file system and says when that failed, and whether a file system is local.

use std::os::fd::AsFd;

/// File systems of which `syncfs` writes everything to the medium and reports every failed write, by their magic
/// numbers: ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs. Network file systems and FUSE may only pass the data on, and
/// overlayfs does not report the failures of the file system below it.
const RELIABLE: [u64; 6] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x2FC1_2FC1, 0x0102_1994];
/// Earlier versions of Linux do not report failed writes.
const LINUX_MIN: (u32, u32) = (5, 8);

/// Tells whether `syncfs` can be relied on below a directory.
pub(crate) fn is_reliable(root: impl AsFd) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release).is_some_and(|version| version >= LINUX_MIN) && is_local(root)
}

/// Tells whether a directory is on a file system that only this machine uses, and that has its files itself.
pub(crate) fn is_local(root: impl AsFd) -> bool {
    let magic = rustix::fs::fstatfs(root).ok().and_then(|found| u64::try_from(found.f_type).ok());
    // Some systems have the number as 32 bits with a sign.
    magic.is_some_and(|magic| RELIABLE.contains(&(magic & 0xFFFF_FFFF)))
}

/// Reads the first two numbers of a release like `6.1.0-18-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|char: char| !char.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_numbers() {
        for (release, want) in [
            ("6.1.0-18-amd64\n", Some((6, 1))),
            ("5.10.0", Some((5, 10))),
            ("5.8-rc1", Some((5, 8))),
            ("", None),
            ("linux", None),
        ] {
            assert_eq!(version(release), want, "{release}");
        }
        assert!(version("5.10.0") > Some(LINUX_MIN) && version("4.19.0") < Some(LINUX_MIN));
    }
}
