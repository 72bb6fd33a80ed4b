//! Outputs of calls as lines: in the colours of the program, and folded.

use super::segments::{Line, Segment};
use super::{ScreenTone, one};
use crate::nodes::ansi_lines;
use crate::text_format::count;

/// Returns an output as lines, in the colours of the program. What has no colour gets a tone.
pub(super) fn output_lines(text: &str, tone: ScreenTone) -> Vec<Line> {
    let segment = |span: crate::nodes::AnsiSpan| {
        let is_plain = span.style == crate::nodes::AnsiStyle::default();
        Segment::new(if is_plain { tone } else { ScreenTone::Output(span.style) }, &span.text)
    };
    ansi_lines(text).into_iter().map(|spans| spans.into_iter().map(segment).collect()).collect()
}

/// Keeps the first and the last of many lines, and says how many are folded. `None` keeps all.
pub(super) fn fold(mut lines: Vec<Line>, limit: Option<usize>) -> Vec<Line> {
    let Some(limit) = limit.filter(|limit| lines.len() > *limit + 1) else { return lines };
    let first = limit / 3;
    let folded = lines.len() - limit;
    let hint = format!("⋯ {}, shown by -t 4", count(folded as u64, "more line"));
    lines.splice(first..first + folded, [one(ScreenTone::Frame, &hint)]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_outputs_are_folded_in_the_middle() {
        let text: String = ["1", "2", "3", "4", "5", "6", "7", "8"].join("\n");
        let shown = |limit| -> Vec<String> {
            let lines = fold(output_lines(&text, ScreenTone::Plain), limit);
            lines.into_iter().map(|line| line.into_iter().map(|segment| segment.text).collect()).collect()
        };
        assert_eq!(shown(None).len(), 8);
        assert_eq!(shown(Some(7)).len(), 8, "one line is not folded into one line");
        assert_eq!(shown(Some(3)), ["1", "⋯ 5 more lines, shown by -t 4", "7", "8"]);
    }
}
