//! How fast a spine is validated: sealed segments of 5 MiB, most of it events as agents emit them.

use std::path::Path;
use std::sync::Arc;

use steno_disk::RealDisk;
use steno_journal::{Journal, Level, Options, Rotation, Store};
use steno_model::json::RawJson;
use steno_model::{SpineDraft, SpineType, ThreadId};
use steno_spine::validate_spine;
use steno_testkit::bench_report::{Row, Spent, float, median, rounded};
use steno_testkit::sample::time;

use crate::Outcome;
use crate::traced_disk::TracedDisk;

const ROUNDS: usize = 5;
const RECORDS: u64 = 210_000;
const TEXT_BYTES: usize = 700;
/// One record in so many is one whose payload is looked into more closely.
const RARE_EVERY: u64 = 100;
const MB_PER_S_MIN: f64 = 350.0;

/// Measures it on a spine that the page cache holds.
pub(crate) fn measure(dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let thread = ThreadId::parse("thread_1")?;
    write(place.path(), &thread)?;
    let store = Store::open(Arc::new(RealDisk::create(place.path())?))?;
    let (mut rates, mut walls, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (report, spent) = Spent::on(|| validate_spine(&store, &thread));
        let report = report?;
        if report.records != RECORDS || report.sealed != report.segments || !report.findings.is_empty() {
            return Err("the validator saw another spine than was written".into());
        }
        bytes = report.bytes;
        rates.push(float(bytes) / 1e6 / spent.one_core().as_secs_f64());
        walls.push(float(bytes) / 1e6 / spent.wall.as_secs_f64());
    }
    let row = Row::new("spine validate", median(&rates), "MB/s")
        .at_least(MB_PER_S_MIN)
        .with("wall_mb_per_s", rounded(median(&walls)))
        .with("bytes", bytes)
        .with("trials", rates.iter().copied().map(rounded).collect::<Vec<f64>>());
    take(row);
    Ok(())
}

fn write(root: &Path, thread: &ThreadId) -> Outcome<()> {
    // Its syncs are left out: the disk would still be written to while we measure.
    let disk = TracedDisk::create(root, 0)?;
    let journal = Journal::new(Store::create(Arc::new(disk))?, Options::default());
    let spine = journal.spine(thread, Rotation::default())?;
    let text = "A line of output, \\\"quoted\\\".\\n".repeat(TEXT_BYTES / 32);
    let event = format!(
        r#"{{"id":"turn-1","msg":{{"type":"item_completed","thread_id":"t","item":{{"type":"AgentMessage","id":"i","content":[{{"type":"Text","text":"{text}"}}]}},"n":[1,2.5,null,true]}}}}"#
    );
    let rare = format!(
        r#"{{"turn_id":"turn-1","kind":"local","pre_compaction_history":[{{"text":"{text}"}}],"post_compaction_history":[]}}"#
    );
    let event = SpineDraft::new(SpineType::Event, time(), RawJson::parse(&event)?)?;
    let rare = SpineDraft::new(SpineType::CompactionBoundary, time(), RawJson::parse(&rare)?)?;
    for number in 0..RECORDS {
        spine.record(if number % RARE_EVERY == 0 { &rare } else { &event }, Level::Written)?;
    }
    spine.close()?;
    Ok(())
}
