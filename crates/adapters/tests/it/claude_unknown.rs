//! Claude's files of every version have no unknown record types except those listed here.

use steno_testkit::{needs, places, shared_dir};

use crate::reading::{claude_file, is_transcript, read};

/// Files with their unknown record types. New types of a new version appear here first.
const UNKNOWN: [(&str, &[&str]); 0] = [];

#[test]
fn unknown_types_are_those_of_the_list() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut found = Vec::new();
    let mut files = 0;
    for part in ["versions/claude", "recordings/claude", "captures/claude"] {
        for name in places::files_below(&shared.join(part)) {
            if !is_transcript(&name) {
                continue;
            }
            files += 1;
            let (adapter, pieces) = claude_file(&shared.join(part).join(&name));
            let reading = read(adapter, &pieces);
            assert_eq!(reading.completeness.unreadable, 0, "{part}/{name}");
            let unknown: Vec<String> = reading.completeness.unknown.into_keys().collect();
            if !unknown.is_empty() {
                found.push((format!("{part}/{name}"), unknown));
            }
        }
    }
    assert!(files > 40, "only {files} files");
    let want: Vec<(String, Vec<String>)> = UNKNOWN
        .iter()
        .map(|(name, types)| ((*name).to_owned(), types.iter().map(|one| (*one).to_owned()).collect()))
        .collect();
    assert_eq!(found, want);
}
