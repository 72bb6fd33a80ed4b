//! Finds patterns of `exclude_projects` and `exclude_paths` that match nothing.

use steno_capture::discovery::Home;
use steno_recorder::sources::{Exclusions, SourceLocations};

use crate::settings::Settings;

/// A pattern that matches nothing.
pub struct UnmatchedPattern {
    pub what: String,
    pub mend: String,
}

/// Returns the patterns that match nothing in agents' homes. Each pattern is tried alone.
pub fn unmatched_exclusions(homes: &[Home], settings: &Settings) -> Vec<UnmatchedPattern> {
    let mut unmatched = Vec::new();
    let archive = &settings.capture;
    for (key, patterns) in [
        ("exclude_projects", &archive.exclude_projects.value),
        ("exclude_paths", &archive.exclude_paths.value),
    ] {
        for pattern in patterns {
            let one = std::slice::from_ref(pattern);
            let exclusions = match key {
                "exclude_projects" => Exclusions::new(one, &[]),
                _ => Exclusions::new(&[], one),
            };
            let places = SourceLocations { homes: homes.to_vec(), exclusions, ..SourceLocations::default() };
            if places.list().excluded == 0 {
                let what = format!("`{pattern}` in `{key}` matches no agent's file on this machine");
                let mend = "steno config".to_owned();
                unmatched.push(UnmatchedPattern { what, mend });
            }
        }
    }
    unmatched
}
