//! How `receipt ls` prints a turn.

use anstyle::{AnsiColor, Style};
use steno_model::records::{RecordStatus, TurnRecord};
use steno_views::{Lines, columns_of, cut, padding, visible};

use crate::id_lines::IdMarks;

/// The widths of the columns of turns, states and times.
const TURN_CHARS: usize = "turn-0001".len();
const STATUS_CHARS: usize = "in_progress".len();
const TIME_CHARS: usize = "2026-06-08T08:14:42.123Z".len();
const MINUTE_CHARS: usize = "2026-06-08T08:14".len();
/// The length of a prompt if the width of the terminal is not known.
const PROMPT_CHARS_MAX: usize = 100;
/// On a narrower terminal, prompts have a line of their own, and times no seconds.
const WIDE_COLUMNS: usize = 110;
const PROMPT_INDENT: &str = "    ";

/// The widths of the columns of ids, which other systems choose freely.
pub struct TurnColumns<'a> {
    marks: &'a IdMarks,
    thread: usize,
    turn: usize,
}

impl<'a> TurnColumns<'a> {
    pub fn of(turns: &[TurnRecord], marks: &'a IdMarks) -> Self {
        let widest = |id: fn(&TurnRecord) -> &str| {
            turns.iter().map(|turn| columns_of(&visible(id(turn), Lines::Escape))).max().unwrap_or(0)
        };
        Self { marks, thread: widest(|turn| &turn.thread_id), turn: widest(|turn| &turn.id).max(TURN_CHARS) }
    }

    /// Returns a line for people: session, turn, state, start time, and the beginning of the prompt.
    pub fn row(&self, turn: &TurnRecord, width: Option<usize>) -> String {
        let shown = |text: &str| visible(text, Lines::Escape).into_owned();
        let status = shown(&turn.status.to_string());
        let style = match turn.status.known() {
            Some(RecordStatus::Completed) => AnsiColor::Green.on_default(),
            Some(RecordStatus::Failed) => AnsiColor::Red.on_default().bold(),
            Some(
                RecordStatus::Queued
                | RecordStatus::InProgress
                | RecordStatus::Interrupted
                | RecordStatus::Canceled,
            )
            | None => Style::new(),
        };
        // Padded outside of the style, so that a line without more ends with its last word.
        let status_padding = padding(&status, STATUS_CHARS);
        let is_narrow = width.is_some_and(|width| width < WIDE_COLUMNS);
        let started = turn.started_at.as_deref().unwrap_or_default();
        let minute = started.get(..MINUTE_CHARS).filter(|_| is_narrow);
        let mut started = shown(minute.unwrap_or(started));
        if !is_narrow {
            started.push_str(&padding(&started, TIME_CHARS));
        }
        let used = self.thread
            + self.turn
            + columns_of(&status).max(STATUS_CHARS)
            + columns_of(&started)
            + 4 * "  ".len();
        // One column for the ellipsis.
        let before_prompt = if is_narrow { PROMPT_INDENT.len() } else { used };
        let prompt_chars = width.map_or(PROMPT_CHARS_MAX, |width| width.saturating_sub(before_prompt + 1));
        let prompt = cut(turn.input_summary.as_deref().unwrap_or_default(), prompt_chars);
        let dim = Style::new().dimmed();
        let thread_padding = padding(&shown(&turn.thread_id), self.thread);
        let id = shown(&turn.id);
        let id_padding = padding(&id, self.turn);
        let line = format!(
            "{}{thread_padding}  {id}{id_padding}  {style}{status}{style:#}{status_padding}  {dim}{started}{dim:#}",
            self.marks.mark(&turn.thread_id),
        );
        let gap = if is_narrow { format!("\n{PROMPT_INDENT}") } else { "  ".to_owned() };
        format!("{line}{gap}{}", shown(&prompt)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prompt_chars: usize, width: Option<usize>, want_chars: usize, is_cut: bool) {
        let turn = serde_json::json!({"id": "turn-0001", "thread_id": "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90",
            "status": "in_progress", "started_at": "2026-06-08T08:14:42.123Z",
            "input_summary": "ä".repeat(prompt_chars)});
        let turn: TurnRecord = serde_json::from_value(turn).unwrap();
        let dim = Style::new().dimmed();
        let row = TurnColumns::of(std::slice::from_ref(&turn), &IdMarks::none()).row(&turn, width);
        let plain = row.replace(&dim.render().to_string(), "").replace(&dim.render_reset().to_string(), "");
        assert_eq!((plain.chars().count(), plain.ends_with('…')), (want_chars, is_cut), "{plain}");
    }

    #[test]
    fn long_prompt_is_cut_with_an_ellipsis() {
        const BEFORE: usize = 88;
        check(100, None, BEFORE + 100, false);
        check(101, None, BEFORE + 100 + 1, true);
        check(41, Some(130), 130 - 1, false);
        check(42, Some(130), 130, true);
        // Without seconds; the prompt is on the next line.
        check(75, Some(80), 78 + 1 + 4 + 75, false);
        check(76, Some(80), 78 + 1 + 4 + 75 + 1, true);
    }
}
