//! Draws the tables of Markdown, fitted to the width.

use super::segments::{Line, Segment, columns};
use super::speech::{SpeechStyle, inline_lines};
use super::wrap::{Wrap, wrap};
use super::{ScreenTone, spaces};
use crate::nodes::{Inline, TableAlignment};

/// The fewest columns of the terminal for a column of a table.
const COLUMN_MIN: usize = 6;
/// Between two columns.
const BAR: &str = " │ ";

/// Returns the lines of a table. A table with too many columns for the width has a line for each cell.
pub(super) fn table_lines(
    alignments: &[TableAlignment],
    head: &[Vec<Inline>],
    rows: &[Vec<Vec<Inline>>],
    style: SpeechStyle,
) -> Vec<Line> {
    let cell = |inlines: &Vec<Inline>| inline_lines(inlines, style).concat();
    let row = |row: &[Vec<Inline>]| row.iter().map(cell).collect::<Vec<Line>>();
    let mut head = row(head);
    for segment in head.iter_mut().flatten() {
        segment.tone = ScreenTone::Heading;
    }
    let rows: Vec<Vec<Line>> = rows.iter().map(|cells| row(cells)).collect();
    let Some(widths) = widths(&head, &rows, style.columns) else { return cells_below(&head, &rows, style) };
    let mut lines = row_lines(&head, &widths, alignments);
    let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
    lines.push(vec![Segment::new(ScreenTone::Frame, &rule)]);
    for row in &rows {
        lines.extend(row_lines(row, &widths, alignments));
    }
    lines
}

/// Returns the width of each column; `None` if they do not fit.
fn widths(head: &[Line], rows: &[Vec<Line>], all: Option<usize>) -> Option<Vec<usize>> {
    let mut widths: Vec<usize> = head.iter().map(|cell| columns(cell).max(1)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let Some(all) = all else { return Some(widths) };
    let bars = widths.len().saturating_sub(1) * crate::columns_of(BAR);
    let room = all.checked_sub(bars)?;
    // The widest column gives way first.
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        if *widest <= COLUMN_MIN {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

fn row_lines(row: &[Line], widths: &[usize], alignments: &[TableAlignment]) -> Vec<Line> {
    let cells: Vec<Vec<Line>> =
        row.iter().zip(widths).map(|(cell, width)| wrap(cell, Some(*width), Wrap::Words)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |number: usize| {
        let mut line = Line::new();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line.push(Segment::new(ScreenTone::Frame, BAR));
            }
            let cell = cells.get(column).and_then(|cell| cell.get(number)).cloned().unwrap_or_default();
            let free = width.saturating_sub(columns(&cell));
            let before = match alignments.get(column) {
                Some(TableAlignment::Right) => free,
                Some(TableAlignment::Center) => free / 2,
                Some(TableAlignment::Left) | None => 0,
            };
            line.push(spaces(before));
            line.extend(cell);
            line.push(spaces(free - before));
        }
        line
    };
    (0..height).map(line).collect()
}

/// Returns a line for each cell: `head: cell`.
fn cells_below(head: &[Line], rows: &[Vec<Line>], style: SpeechStyle) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        for (name, cell) in head.iter().zip(row) {
            let colon = Segment::new(ScreenTone::Frame, ": ");
            let line: Line = name.iter().cloned().chain([colon]).chain(cell.iter().cloned()).collect();
            lines.extend(wrap(&line, style.columns, Wrap::Words));
        }
    }
    lines
}
