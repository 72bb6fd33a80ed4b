//! `steno du`: shows what takes up space, and how much was saved.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use steno_disk::StorePath;
use steno_library::Library;
use steno_vault::{SourceUsage, Usage, Vault};
use steno_views::{Lines, count, thousands, visible};

use crate::args::{DuArgs, DuGroup};
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::IdMarks;
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

/// The maximum number of rows without `--all`.
const ROWS_MAX: usize = 20;

/// The sizes of a group of files.
#[derive(Default)]
struct SizeSum {
    files: u64,
    bytes: u64,
    own: u64,
}

pub fn run(args: &DuArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let vault = Vault::open(Arc::clone(store.disk()));
    let usage = vault.usage()?;
    let sizes = StoreSizes {
        evidence: vault.disk_bytes()?,
        transcripts: store.disk().size_of_files(&StorePath::transcripts())?,
        superseded: store.superseded_bytes()?,
        index: Library::new(Some(store.clone())).index_bytes(),
    };
    if usage.sources.is_empty() && sizes.transcripts == 0 {
        return Err(Failure::empty("the store is empty").with_hint("`steno up` fills it"));
    }
    let mut sums: BTreeMap<String, SizeSum> = BTreeMap::new();
    for source in &usage.sources {
        let sum = sums.entry(name_of(source, args.by)).or_default();
        sum.files += 1;
        sum.bytes += source.bytes;
        sum.own += source.own_stored_bytes + source.own_file_bytes;
    }
    let mut rows: Vec<(String, SizeSum)> = sums.into_iter().collect();
    rows.sort_by(|one, other| other.1.own.cmp(&one.1.own).then_with(|| one.0.cmp(&other.0)));
    if args.json {
        print_json(&rows, &usage, &sizes, output);
    } else {
        let marks = match args.by {
            DuGroup::Session => IdMarks::of(&Library::new(Some(store)))?,
            DuGroup::Agent | DuGroup::Project | DuGroup::File => IdMarks::none(),
        };
        print(&rows, (&usage, &sizes), args, &marks, output);
        output.line(&format!("transcripts {:>8} with their seals", size(sizes.transcripts)));
        if sizes.superseded > 0 {
            let superseded = size(sizes.superseded);
            output.line(&format!("  old       {superseded:>8} of them, kept when runs were derived again"));
        }
        if sizes.index > 0 {
            output.line(&format!("index       {:>8} that can be deleted", size(sizes.index)));
        }
    }
    Ok(Exit::Done)
}

/// The sizes of the parts of a store on disk.
struct StoreSizes {
    evidence: u64,
    /// The transcripts with their seals and notes, old ones included.
    transcripts: u64,
    superseded: u64,
    index: u64,
}

/// Returns the row of a source.
fn name_of(source: &SourceUsage, by: DuGroup) -> String {
    let info = &source.info;
    let provider = info.provider.as_ref().map_or_else(|| "other".to_owned(), ToString::to_string);
    match by {
        DuGroup::Agent => provider,
        DuGroup::Project => {
            format!("{provider} {}", info.project.as_deref().or(info.session.as_deref()).unwrap_or("-"))
        }
        DuGroup::Session => format!("{provider} {}", info.session.as_deref().unwrap_or("-")),
        DuGroup::File => info.path.0.display().to_string(),
    }
}

fn print(
    rows: &[(String, SizeSum)],
    (usage, sizes): (&Usage, &StoreSizes),
    args: &DuArgs,
    marks: &IdMarks,
    output: &mut Output,
) {
    let shown = if args.all { rows.len() } else { rows.len().min(ROWS_MAX) };
    output.line("   alone   source  files");
    for (name, sum) in &rows[..shown] {
        // The name is an agent and a session.
        let name = match name.rsplit_once(' ') {
            Some((agent, session)) => format!("{} {}", visible(agent, Lines::Escape), marks.mark(session)),
            None => visible(name, Lines::Escape).into_owned(),
        };
        output.line(&format!(
            "{:>8} {:>8} {:>6}  {name}",
            size(sum.own),
            size(sum.bytes),
            thousands(sum.files)
        ));
    }
    if shown < rows.len() {
        output.line(&format!("and {} more; `--all` shows them", thousands((rows.len() - shown) as u64)));
    }
    output.line("");
    output.line(&format!(
        "evidence    {:>8}, unpacked {} in {}",
        size(sizes.evidence),
        size(usage.bytes),
        count(usage.sources.len() as u64, "file")
    ));
    for (bytes, by) in [
        (usage.saved_by_sharing, "by storing equal parts once"),
        (usage.saved_by_delta, "by delta compression"),
        (usage.saved_by_compression, "by compression"),
    ] {
        output.line(&format!("  saved     {:>8} {by}", size(bytes)));
    }
    if usage.garbage_bytes > 0 {
        output.line(&format!("  unused    {:>8} left by crashed processes", size(usage.garbage_bytes)));
    }
}

fn print_json(rows: &[(String, SizeSum)], usage: &Usage, sizes: &StoreSizes, output: &mut Output) {
    for (name, sum) in rows {
        let row = json!({"kind": "row", "name": name, "files": sum.files, "bytes": sum.bytes, "own_bytes": sum.own});
        output.json_line(&row.to_string());
    }
    let total = json!({
        "kind": "total",
        "sources": usage.sources.len(),
        "bytes": usage.bytes,
        "chunk_bytes": usage.chunk_bytes,
        "stored_bytes": usage.stored_bytes,
        "manifest_bytes": usage.manifest_bytes,
        "tail_bytes": usage.tail_bytes,
        "garbage_bytes": usage.garbage_bytes,
        "saved_by_sharing": usage.saved_by_sharing,
        "saved_by_likeness": usage.saved_by_delta,
        "saved_by_compression": usage.saved_by_compression,
        "disk_bytes": sizes.evidence,
        "transcript_bytes": sizes.transcripts,
        "superseded_bytes": sizes.superseded,
        "index_bytes": sizes.index,
    });
    output.json_line(&total.to_string());
}
