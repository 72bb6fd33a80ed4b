//! A rollout trace of Codex, recorded as spines.

use std::io::{self, BufReader};
use std::path::{Component, Path};

use steno_adapters::codex::spine::TraceFold;
use steno_disk::{Links, open_regular, read_up_to};
use steno_journal::{Journal, Level};
use steno_model::{SpineSource, ThreadId};

use super::rollout::each_line;
use super::{Error, ForgottenRule, SourceName, SpineRecorder, SpineWriteReport};

/// The maximum length of a file of a trace that is read at once.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Records the part of a trace that the spines of its threads do not have.
///
/// # Errors
///
/// [`Error::Forgotten`] if a session in it was forgotten, or an error of its files or the journal.
pub fn record_trace(
    journal: &Journal,
    dir: &Path,
    forgotten: ForgottenRule,
) -> Result<(Vec<ThreadId>, SpineWriteReport), Error> {
    let manifest = dir.join("manifest.json");
    let text = read_text(&manifest).map_err(|source| Error::Source { path: manifest.clone(), source })?;
    let mut fold = TraceFold::new(&text).ok_or_else(|| Error::NoThread { path: manifest.clone() })?;
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let source = SourceName::new(SpineSource::RolloutTrace, &name);
    let mut recorder = SpineRecorder::new(journal.clone(), source, Level::Written).with_forgotten(forgotten);
    let trace = dir.join("trace.jsonl");
    let failed = |source| Error::Source { path: trace.clone(), source };
    let mut file = BufReader::new(open_regular(&trace, Links::Followed).map_err(failed)?);
    let too_long = each_line(&trace, &mut file, None, &mut |offset, line| {
        let made = fold.line(offset, line, &mut |path| payload(dir, path));
        made.into_iter().try_for_each(|(thread, made)| recorder.write(&thread, made))
    })?;
    let (threads, written) = recorder.close()?;
    Ok((threads, written + SpineWriteReport { refused: too_long, ..SpineWriteReport::default() }))
}

/// Reads the file that a record refers to. A path that leads outside is ignored.
fn payload(dir: &Path, path: &str) -> Option<String> {
    let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| read_text(&dir.join(path)).ok()).flatten()
}

fn read_text(path: &Path) -> io::Result<String> {
    let file = open_regular(path, Links::Refused)?;
    String::from_utf8(read_up_to(file, PAYLOAD_BYTES_MAX)?).map_err(io::Error::other)
}
