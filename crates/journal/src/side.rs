//! Files beside a transcript that grow by a line now and then: seals and notes.

use crate::check::ObjectLines;
use crate::disk::{Disk, append_all, sync_dir, sync_file};
use crate::error::Error;
use crate::names::StorePath;
use crate::recovery;
use crate::scan::{Ending, scan};

/// Returns a value of ours as a line of JSON, without a newline.
pub(crate) fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own records are strings and numbers")
}

/// Appends one line and syncs it; a torn tail that a crash left is moved aside first.
pub(crate) fn append_line(disk: &dyn Disk, path: &StorePath, line: &str) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    if let Some(file) = disk.open_read(path).map_err(failed("open"))? {
        let found = scan(file, path, &ObjectLines, Vec::new())?;
        if let Ending::Torn { offset, len } = found.ending {
            recovery::keep_torn(disk, path, offset, len)?;
            recovery::cut(disk, path, offset)?;
        }
        // These files are small. Should the sync of an earlier line have failed, the disk may lack what reading
        // shows, and the new line would stand behind a hole.
        recovery::write_again(disk, path, 0, found.good.len)?;
    }
    let file = disk.open_append(path).map_err(failed("open"))?;
    let before = file.identity().map_err(failed("look at"))?.size_bytes;
    let written = append_all(&*file, format!("{line}\n").as_bytes());
    if let Err(source) = written {
        // Best effort: what stays is a torn tail, which the next append moves aside.
        file.truncate(before).ok();
        return Err(failed("write")(source));
    }
    sync_file(&*file).map_err(failed("sync"))?;
    sync_dir(disk, &path.dir()).map_err(failed("sync the directory of"))
}
