//! Homes of real agents: every file in them is classified.

use std::path::Path;

use steno_capture::discovery::{Home, Origin, Role, files, list_path};
use steno_model::{Provider, Vocabulary as _};
use steno_testkit::{needs, places, shared_dir};

use crate::trees::paths;

/// Names of the files that hold a session's records, as a captured home has them.
fn is_transcript(provider: Provider, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match provider {
        Provider::Claude => {
            path.starts_with("projects/") && has_ending(path, "jsonl") && name != "journal.jsonl"
        }
        Provider::Codex => name.starts_with("rollout-"),
        Provider::Gemini => path.contains("/chats/"),
        Provider::Copilot => name == "events.jsonl",
        Provider::OpenCode => false,
    }
}

/// Tells whether a file may be ignored.
fn is_passing(path: &str) -> bool {
    has_ending(path, "lock") || path.starts_with("cache/")
}

fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension() == Some(ending.as_ref())
}

fn check(home: &Home) -> usize {
    let listing = files(home);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let below = |path: &Path| {
        path.strip_prefix(&home.root).expect("it lies in the home").to_string_lossy().into_owned()
    };
    let all = places::files_below(&home.root);
    let listed: Vec<String> = paths(&listing.files).map(below).collect();
    let left: Vec<_> = all.iter().filter(|path| !listed.contains(path) && !is_passing(path)).collect();
    assert!(left.is_empty(), "{}: {left:?}", home.root.display());
    for file in &listing.files {
        let path = below(&file.path);
        let is_transcript = is_transcript(home.provider, &path);
        assert_eq!(file.place.role == Role::Transcript, is_transcript, "{path}: {:?}", file.place);
        assert!(file.place.session.is_some() || file.place.role == Role::Shared, "{path}");
    }
    // A listing of the path finds the same, except for shared files.
    let named = list_path(&home.root).files.into_iter().filter(|file| file.provider() == Some(home.provider));
    let of_sessions = listing.files.iter().filter(|file| file.place.role != Role::Shared).count();
    assert!(named.count() >= of_sessions, "{}", home.root.display());
    listing.files.len()
}

#[test]
fn captured_homes_are_classified_file_by_file() {
    let captures = needs!(shared_dir(), "../shared is absent").join("captures");
    let is_captured = |provider: &&Provider| captures.join(provider.as_str()).is_dir();
    let known: Vec<_> = Provider::ALL.iter().filter(is_captured).copied().collect();
    assert!(known.len() >= 4, "only {known:?}");
    for provider in known {
        let mut found = 0;
        let versions = captures.join(provider.as_str());
        for cmd in places::files_below(&versions).into_iter().filter(|path| path.ends_with("/run.txt")) {
            let root = versions.join(cmd).parent().unwrap().join("home");
            if root.is_dir() {
                let root = root.canonicalize().unwrap();
                found += check(&Home { provider, root, origin: Origin::Default });
            }
        }
        assert!(found > 0, "no home of {provider} among the captures");
    }
}
