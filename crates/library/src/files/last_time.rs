//! When the last record of a session file was written, read from its end.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use steno_disk::{Links, open_regular};

/// How much of the end of a file is looked at: first little, and more if no whole record with a time is there.
const END_BYTES: [u64; 2] = [4 * 1024, 256 * 1024];

/// The field of a record that says when it was written.
#[derive(Deserialize)]
struct RecordTime<'a> {
    #[serde(borrow)]
    timestamp: Option<&'a str>,
}

/// Tells whether a file may have records from a time on. Files are appended to in the order of time, so the last records
/// decide. A file without the time of a whole record at its end may have them.
pub(super) fn may_have_records_since(path: &Path, since: Timestamp) -> bool {
    END_BYTES
        .into_iter()
        .find_map(|len| end_of(path, len).ok().and_then(|end| latest(&end)))
        .is_none_or(|last| last >= since)
}

fn end_of(path: &Path, len: u64) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path, Links::Refused)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(len)))?;
    let mut end = Vec::with_capacity(usize::try_from(len.min(size)).unwrap_or(0));
    file.take(len).read_to_end(&mut end)?;
    Ok(end)
}

/// Returns the latest time of the records in the end of a file, whose first line may be cut.
fn latest(end: &[u8]) -> Option<Timestamp> {
    let time = |line: &[u8]| serde_json::from_slice::<RecordTime<'_>>(line).ok()?.timestamp?.parse().ok();
    end.split(|byte| *byte == b'\n').filter_map(time).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content: &str, since: &str, want: bool) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        assert_eq!(may_have_records_since(file.path(), since.parse().unwrap()), want, "{since}");
    }

    #[test]
    fn the_last_times_of_a_file_decide() {
        let line = |time: &str| format!("{{\"type\":\"user\",\"timestamp\":\"{time}\"}}\n");
        let two = line("2026-11-18T10:00:00.000Z") + &line("2026-11-19T10:00:00.000Z");
        check(&two, "2026-11-19T10:00:00Z", true);
        check(&two, "2026-11-19T10:00:01Z", false);
        // Bookkeeping without a time, a torn line, and a long record after the last time.
        check(
            &(two.clone() + "{\"type\":\"summary\"}\n{\"timestamp\":\"2026-"),
            "2026-11-19T10:00:01Z",
            false,
        );
        check(&format!("{two}{{\"text\":\"{}\"}}\n", "x".repeat(9000)), "2026-11-19T10:00:01Z", false);
        check(&format!("{two}{{\"text\":\"{}\"}}\n", "x".repeat(300_000)), "2026-11-19T10:00:01Z", true);
        // A time inside of a text or of another object is not a record's.
        check(
            &(two + "{\"text\":\"{\\\"timestamp\\\":\\\"2026-11-20T00:00:00Z\\\"}\"}\n"),
            "2026-11-19T12:00:00Z",
            false,
        );
        let rows = "{\"timestamp\":\"2020-01-01T00:00:00Z\"},".repeat(200);
        let nested = format!("{{\"timestamp\":\"2026-11-19T10:00:00Z\",\"rows\":[{rows}{{}}]}}\n");
        check(&nested, "2026-11-19T09:00:00Z", true);
        check(&nested, "2026-11-19T11:00:00Z", false);
        check("", "2026-11-19T10:00:00Z", true);
    }
}
