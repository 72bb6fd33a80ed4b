//! `steno spine ls`: lists spines, after a quick look at each.

use anstyle::{AnsiColor, Style};
use serde_json::json;
use steno_journal::{SpineOverview, SpineState, spine_overview};
use steno_model::ThreadId;
use steno_views::count;

use crate::args::SpineLsArgs;
use crate::failure::{Exit, Outcome};
use crate::id_lines::IdMarks;
use crate::output::{Output, size, state_word};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineLsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = runs::need_library(settings)?;
    let store = library.store()?;
    let mut spines = Vec::new();
    for thread in store.spines()? {
        let look = spine_overview(store, &thread)?;
        spines.push((thread, look));
    }
    if spines.is_empty() {
        return Err(super::no_spines());
    }
    let marks = IdMarks::of(&library)?;
    let width = spines.iter().map(|(thread, _)| thread.as_str().len()).max().unwrap_or(0);
    for (thread, look) in &spines {
        if args.json {
            output.json_line(&line_json(thread, look));
        } else {
            let padding = " ".repeat(width - thread.as_str().len());
            output.line(&format!("{}{padding}{}", marks.mark(thread.as_str()), columns(look)));
        }
    }
    Ok(Exit::Done)
}

fn columns(look: &SpineOverview) -> String {
    const STATE_CHARS: usize = "recording".len();
    let style = match look.state {
        SpineState::Recording => AnsiColor::Cyan.on_default().bold(),
        SpineState::Sealed => AnsiColor::Green.on_default(),
        SpineState::Unsealed => Style::new(),
        SpineState::Damaged => AnsiColor::Red.on_default().bold(),
    };
    let state = state_word(look.state.as_str());
    let padding = " ".repeat(STATE_CHARS - state.len());
    format!(
        "  {style}{state}{style:#}{padding}  {:>14}  {:>12}  {:>8}",
        count(look.records, "record"),
        count(look.segments, "segment"),
        size(look.bytes),
    )
}

fn line_json(thread: &ThreadId, look: &SpineOverview) -> String {
    json!({
        "thread_id": thread.as_str(),
        "state": look.state.as_str(),
        "records": look.records,
        "segments": look.segments,
        "sealed": look.sealed,
        "bytes": look.bytes,
    })
    .to_string()
}
