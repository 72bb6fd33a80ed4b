//! File owners in `steno verify`.

use anstyle::AnsiColor;
use serde_json::json;
use steno_disk::ForeignEntry;
use steno_views::{Lines, visible};

use super::CheckCounts;
use crate::commands::doctor::survey;
use crate::output::Output;
use crate::settings::Settings;

/// Reports everything in the store that belongs to another user than the store itself.
pub fn verify_owners(settings: &Settings, as_json: bool, output: &mut Output) -> CheckCounts {
    // A store that cannot be opened is reported elsewhere.
    let Ok(Some(survey)) = survey(settings) else { return CheckCounts::default() };
    for ForeignEntry { path, owner } in &survey.foreign {
        let path = path.to_string_lossy();
        if as_json {
            let line = json!({"kind": "foreign_file", "path": path, "ok": false, "uid": owner, "store_uid": survey.owner});
            output.json_line(&line.to_string());
        } else {
            let bad = AnsiColor::Red.on_default().bold();
            let path = visible(&path, Lines::Escape);
            let words = format!("belongs to user {owner}, the store to user {}", survey.owner);
            output.line(&format!("{bad}FOREIGN{bad:#}  {path}  {words}"));
        }
    }
    CheckCounts { good: 0, bad: survey.foreign.len() as u64 }
}
