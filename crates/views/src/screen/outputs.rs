//! Outputs of calls: without the frames that agents put around them for the model, and folded.

use super::segments::{Line, Segment};
use super::{ScreenTone, one};
use crate::nodes::ansi_lines;
use crate::text_format::count;

/// What a call gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallOutput {
    pub(super) text: String,
    /// The exit code that the agent wrote into the text.
    pub(super) exit_code: Option<i64>,
}

/// Removes the frame of an agent from an output: it is for the model. Exit codes are read from it.
pub(super) fn call_output(text: &str) -> CallOutput {
    let text = text.trim_start_matches('\n').trim_end();
    let text = inside(text, "<tool_use_error>", "</tool_use_error>");
    let text = inside(text, "<untrusted_context>", "</untrusted_context>").trim_matches('\n');
    let mut exit_code = None;
    let text = codex_output(text, &mut exit_code);
    let text = claude_output(text, &mut exit_code);
    let text = copilot_output(text, &mut exit_code);
    let text = gemini_output(text, &mut exit_code);
    CallOutput { text, exit_code }
}

fn inside<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.strip_prefix(start).and_then(|text| text.strip_suffix(end)).unwrap_or(text)
}

/// `Exit code: 0`, `Wall time: …` and other lines, then `Output:`.
fn codex_output<'a>(text: &'a str, exit_code: &mut Option<i64>) -> &'a str {
    const NAMES: [&str; 5] =
        ["Exit code: ", "Wall time: ", "Chunk ID: ", "Process exited with code ", "Original token count: "];
    let Some((head, output)) =
        text.split_once("Output:\n").or_else(|| text.strip_suffix("Output:").map(|head| (head, "")))
    else {
        return text;
    };
    let is_frame = |line: &str| {
        NAMES.iter().any(|name| line.starts_with(name)) || line.starts_with("Total output lines: ")
    };
    if head.is_empty() || !head.lines().all(is_frame) {
        return text;
    }
    let mut codes =
        head.lines().filter_map(|line| line.strip_prefix(NAMES[0]).or_else(|| line.strip_prefix(NAMES[3])));
    *exit_code = codes.find_map(|code| code.trim().parse().ok());
    output
}

/// `Exit code 1`, then the output.
fn claude_output<'a>(text: &'a str, exit_code: &mut Option<i64>) -> &'a str {
    let Some(rest) = text.strip_prefix("Exit code ") else { return text };
    let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    match code.trim().parse() {
        Ok(code) => {
            *exit_code = Some(code);
            rest
        }
        Err(_) => text,
    }
}

/// The output, then `<shellId: 0 completed with exit code 0>`.
fn copilot_output<'a>(text: &'a str, exit_code: &mut Option<i64>) -> &'a str {
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let code = last.strip_prefix('<').and_then(|last| last.strip_suffix('>'));
    let code = code.and_then(|last| last.rsplit_once("exit code ")).and_then(|(_, code)| code.parse().ok());
    match code {
        Some(code) => {
            *exit_code = Some(code);
            before
        }
        None => text,
    }
}

/// `Output: ` and the output, then lines with names.
fn gemini_output(text: &str, exit_code: &mut Option<i64>) -> String {
    const NAMES: [&str; 5] =
        ["Exit Code: ", "Process Group PGID: ", "Signal: ", "Error: ", "Background PIDs: "];
    let Some(rest) = text.strip_prefix("Output: ") else { return text.to_owned() };
    let mut lines: Vec<&str> = rest.lines().collect();
    while let Some(last) = lines.last().filter(|line| NAMES.iter().any(|name| line.starts_with(name))) {
        if let Some(code) = last.strip_prefix(NAMES[0]) {
            *exit_code = code.trim().parse().ok();
        }
        // Its reason is not a part of the frame.
        if last.starts_with(NAMES[3]) && !last.ends_with("(none)") {
            break;
        }
        lines.pop();
    }
    lines.join("\n")
}

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

    #[track_caller]
    fn check(text: &str, want: &str, exit_code: Option<i64>) {
        assert_eq!(call_output(text), CallOutput { text: want.to_owned(), exit_code }, "{text:?}");
    }

    #[test]
    fn frames_of_agents_are_removed() {
        check("a\nb\n", "a\nb", None);
        check("Exit code 101\nassertion failed", "assertion failed", Some(101));
        check("Exit code 2", "", Some(2));
        check("<tool_use_error>No such tool</tool_use_error>", "No such tool", None);
        check("Exit code: 3\nWall time: 0.1 seconds\nOutput:\na\nOutput:\n", "a\nOutput:", Some(3));
        check("Chunk ID: 1\nProcess exited with code 0\nOutput:\nx", "x", Some(0));
        check("x\n<shellId: 0 completed with exit code 1>", "x", Some(1));
        check(
            "<untrusted_context>\nOutput: a\nb\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>",
            "a\nb",
            Some(3),
        );
    }

    #[test]
    fn text_that_only_looks_like_a_frame_is_kept() {
        for text in ["Exit code soon", "My Output:\nx", "Output:\nx", "<exit code x>", "a <b> exit code 1"] {
            check(text, text, None);
        }
    }

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
