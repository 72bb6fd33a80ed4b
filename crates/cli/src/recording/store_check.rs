//! Checks that a store is for the user's own sessions: not the sample store, and not in a build directory.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::settings::Settings;

/// A file that Cargo and other tools put into directories that may be deleted at any time.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Fails for a store that is not for a user's own sessions.
pub fn check_for_own_sessions(settings: &Settings) -> Result<(), Failure> {
    check_no_demo(settings)?;
    let store = std::path::absolute(&settings.store.value)?;
    let Some(build) = build_directory(&store) else { return Ok(()) };
    let message = format!(
        "the store `{}` is in the build directory `{}`, which a clean build deletes",
        store.display(),
        build.display()
    );
    Err(Failure::usage(message).with_hint(hint(settings)))
}

/// Fails for the store of the sample sessions.
pub fn check_no_demo(settings: &Settings) -> Result<(), Failure> {
    let store = &settings.store.value;
    if !settings.is_demo && !store.join("demo/claude").is_dir() {
        return Ok(());
    }
    let message =
        format!("the store `{}` contains the sample sessions of `steno up --demo`", store.display());
    Err(Failure::usage(message).with_hint(hint(settings)))
}

fn hint(settings: &Settings) -> String {
    let cause = if settings.is_demo { "--demo".to_owned() } else { settings.store.origin.to_string() };
    format!("use another store for your own sessions; this one is set by: {cause}")
}

/// Returns the build directory that contains a path, if there is one.
fn build_directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find(|dir| dir.join(CACHE_MARK).is_file()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_directory_is_found_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::create_dir_all(target.join("a")).unwrap();
        assert_eq!(build_directory(&target.join("a/store")), None);
        std::fs::write(target.join(CACHE_MARK), "Signature: 8a477f597d28d172789f06886806bc55\n").unwrap();
        assert_eq!(build_directory(&target.join("a/store")), Some(target.clone()));
        assert_eq!(build_directory(&target), None);
        assert_eq!(build_directory(&dir.path().join("store")), None);
    }
}
