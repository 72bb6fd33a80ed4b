//! The beginning of a session, for the picker.

use steno_library::Library;
use steno_model::RunId;

use super::{RelatedSessions, draw, shown_sessions};
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// How many bytes are drawn at most.
const BYTES_MAX: usize = 16 * 1024;

/// Returns the first lines of a session, as `steno show` draws them on a terminal of this width.
pub fn preview(run: RunId, columns: usize, settings: &Settings) -> Result<Vec<String>, Failure> {
    let args = ShowArgs { detail: 1, ..ShowArgs::of(run) };
    // No progress is drawn over the picker.
    let library = Library::new(runs::open_store(settings)?);
    let related = RelatedSessions::read(&args.view.run, library, settings)?;
    let sessions = shown_sessions(&related, None)?;
    let (mut output, drawn) = Output::collected(columns, BYTES_MAX);
    draw(sessions, &related, (&args, None), settings, &mut output);
    // It is closed after so many bytes, which is no failure.
    output.flush();
    Ok(drawn.lines())
}
