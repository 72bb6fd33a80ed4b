//! Finds the archived files that are missing or out of date in the index, and what each has lost.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use steno_disk::Identity;
use steno_index::{ContentLoss, RunMark, SourceRow};
use steno_model::with_causes;
use steno_vault::{Manifest, Role, SourceId, Vault};
use steno_views::{Lines, visible};

use super::stale::mark_of;
use crate::sources::session_id;

/// The words in manifests for changes after which content may be missing.
const LOSSES: [&str; 3] = ["shortened", "rewritten", "replaced"];

/// How much of two generations is compared at a time.
const COMPARE_BYTES: usize = 64 * 1024;

/// The sources that are missing or out of date in the index.
pub(super) struct StaleSources {
    changed: Vec<(SourceId, RunMark)>,
    /// The sources that the store no longer has.
    pub(super) gone: Vec<String>,
}

impl StaleSources {
    /// Compares the manifests of the store with what the index knows.
    pub(super) fn find(files: &[(SourceId, Identity)], known: &[SourceRow]) -> Self {
        let mut before: HashMap<&str, RunMark> =
            known.iter().map(|row| (row.source.as_str(), row.mark)).collect();
        let mut changed = Vec::new();
        for (source, found) in files {
            let mark = mark_of(found);
            if before.remove(source.to_string().as_str()) != Some(mark) {
                changed.push((*source, mark));
            }
        }
        let gone = before.into_keys().map(str::to_owned).collect();
        Self { changed, gone }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// Reads the manifests of the changed sources. A damaged one has no path: `steno verify` reports it.
    pub(super) fn rows<'a>(&'a self, vault: &'a Vault) -> impl Iterator<Item = SourceRow> + 'a {
        self.changed.iter().filter_map(|(source, mark)| match vault.manifest(*source) {
            Ok(manifest) => Some(row_of(&manifest?, *mark, vault)),
            Err(error) => {
                tracing::debug!("{}", visible(&with_causes(&error), Lines::Escape));
                Some(SourceRow {
                    source: source.to_string(),
                    mark: *mark,
                    path: Vec::new(),
                    provider: None,
                    role: None,
                    session: None,
                    runs: 0,
                    seen_at: None,
                    loss: None,
                })
            }
        })
    }
}

/// Returns the row that the index would have for a source, without the state of its file.
pub(crate) fn source_row(manifest: &Manifest, vault: &Vault) -> SourceRow {
    row_of(manifest, RunMark { inode: 0, size: 0, changed: 0 }, vault)
}

fn row_of(manifest: &Manifest, mark: RunMark, vault: &Vault) -> SourceRow {
    SourceRow {
        source: manifest.id.to_string(),
        mark,
        path: manifest.info.path.0.as_os_str().as_bytes().to_vec(),
        provider: manifest.info.provider.as_ref().map(ToString::to_string),
        role: Some(manifest.info.role.as_str().to_owned()),
        session: session_id(&manifest.info).map(str::to_owned),
        runs: manifest.adapted.as_ref().map_or(0, |adapted| adapted.runs.len() as u64),
        seen_at: manifest.saved_at().map(str::to_owned),
        loss: if manifest.info.role == Role::Transcript { loss_of(manifest, vault) } else { None },
    }
}

/// Returns the last change after which content of a file was missing.
fn loss_of(manifest: &Manifest, vault: &Vault) -> Option<ContentLoss> {
    let len = |generation: u32| vault.len(manifest, generation).unwrap_or(0);
    last_loss(manifest, len, |earlier| is_back(manifest, earlier, vault))
}

/// Finds the last change after which content was missing. A change does not count if `is_back` says that the file again
/// has the content of the generation before it.
fn last_loss(
    manifest: &Manifest,
    len: impl Fn(u32) -> u64,
    mut is_back: impl FnMut(u32) -> bool,
) -> Option<ContentLoss> {
    // A file that is one JSON document is rewritten whenever it grows.
    let is_document = manifest.info.path.0.extension().is_some_and(|ending| ending == "json");
    let count = u32::try_from(manifest.generations.len()).unwrap_or(u32::MAX);
    // Begins with the last one, because comparing two generations means reading both.
    let mut numbered = (0..count).zip(&manifest.generations).skip(1).rev();
    let (number, generation) = numbered.find(|(number, generation)| {
        LOSSES.contains(&generation.why.as_str())
            && (!is_document || len(*number) < len(number - 1))
            && !is_back(number - 1)
    })?;
    Some(ContentLoss {
        // A shorter file may have replaced it.
        kind: if len(number) < len(number - 1) { "shortened" } else { &generation.why }.to_owned(),
        at: generation.since.time.clone().or_else(|| generation.since.modified.clone()),
        generation: number - 1,
    })
}

/// Tells whether the file now begins with the content of an earlier generation, as after `steno restore`.
fn is_back(manifest: &Manifest, earlier: u32, vault: &Vault) -> bool {
    let last = u32::try_from(manifest.generations.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let len = |generation: u32| vault.len(manifest, generation).unwrap_or(0);
    let wanted = len(earlier);
    if earlier == last || len(last) < wanted {
        return false;
    }
    let mut offset = 0;
    while offset < wanted {
        let (Some(before), Some(now)) =
            (block(manifest, (earlier, offset), vault), block(manifest, (last, offset), vault))
        else {
            return false;
        };
        let same = before.len().min(now.len());
        if same == 0 || before[..same] != now[..same] {
            return false;
        }
        offset += same as u64;
    }
    true
}

/// Reads some bytes of a generation.
fn block(manifest: &Manifest, (generation, offset): (u32, u64), vault: &Vault) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    let read = vault.read(manifest, generation, offset, |_, bytes| {
        block.extend_from_slice(bytes);
        block.len() < COMPARE_BYTES
    });
    read.is_ok().then_some(block)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steno_disk::{Disk as _, StorePath};
    use steno_testkit::sim_disk::SimDisk;
    use steno_vault::{HostPath, Remainder, SourceInfo};

    use super::*;

    /// A file with these generations, the first one included.
    fn vault_with(generations: &[(&str, &str)]) -> (Arc<Vault>, Manifest) {
        let disk = SimDisk::new(1);
        disk.make_dir(&StorePath::locks()).expect("the disk works");
        let vault = Vault::create(Arc::new(disk)).expect("the disk works");
        let path = HostPath("/agents/s.jsonl".into());
        let id = SourceId::derive(&path.0, 0);
        let (role, is_filtered) = (Role::Transcript, false);
        let info =
            SourceInfo { provider: None, role, home: None, path, session: None, project: None, is_filtered };
        let mut writer = vault.write(id, &info, "2026-06-08T08:00:00Z").expect("nobody else writes");
        for (number, (why, text)) in generations.iter().enumerate() {
            if number > 0 {
                let at = format!("2026-06-08T08:00:{number:02}Z");
                writer.begin_generation(why, at.as_str()).expect("the disk works");
            }
            writer.append(text.as_bytes()).expect("the disk works");
            writer.commit(Remainder::InTail).expect("the disk works");
        }
        drop(writer);
        let manifest = vault.manifest(id).expect("the disk works").expect("it was written");
        (vault, manifest)
    }

    #[track_caller]
    fn check(generations: &[(&str, &str)], want: Option<(&str, u32)>, compared: &[u32]) {
        let (vault, manifest) = vault_with(generations);
        let mut asked = Vec::new();
        let len = |generation: u32| vault.len(&manifest, generation).unwrap_or(0);
        let loss = last_loss(&manifest, len, |earlier| {
            asked.push(earlier);
            is_back(&manifest, earlier, &vault)
        });
        assert_eq!(loss.as_ref().map(|loss| (loss.kind.as_str(), loss.generation)), want);
        assert_eq!(asked, compared);
    }

    #[test]
    fn only_generations_since_the_last_loss_are_compared() {
        check(&[("", "one")], None, &[]);
        check(&[("", "one"), ("rewritten", "two")], Some(("rewritten", 0)), &[0]);
        check(&[("", "one"), ("rewritten", "two"), ("shortened", "3")], Some(("shortened", 1)), &[1]);
        check(&[("", "two"), ("rewritten", "o"), ("rewritten", "one")], Some(("shortened", 0)), &[1, 0]);
        // The file has all that it had.
        check(&[("", "one"), ("shortened", "o"), ("rewritten", "one")], None, &[1, 0]);
    }
}
