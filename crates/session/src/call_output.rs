//! Outputs of commands: the frames that agents put around them for the model, and the exit codes in these.

use steno_model::json::RawJson;

/// The output of a call, and its exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct CallOutput {
    /// The output.
    pub text: String,
    /// The exit code that the agent wrote into the text.
    pub exit_code: Option<i64>,
}

/// Removes the frame that an agent put around an output for the model, and reads the exit code from it.
#[must_use]
pub fn call_output(text: &str) -> CallOutput {
    let text = text.trim_start_matches('\n').trim_end();
    let text = inside(text, "<tool_use_error>", "</tool_use_error>");
    let (notice, text) = split_notice(text);
    let text = inside(text, "<untrusted_context>", "</untrusted_context>").trim_matches('\n');
    let mut exit_code = None;
    let text = codex_output(text, &mut exit_code);
    let text = claude_output(text, &mut exit_code);
    let text = copilot_output(text, &mut exit_code);
    let text = gemini_output(text, &mut exit_code);
    // The notice tells where the whole output is.
    CallOutput { text: format!("{notice}{text}"), exit_code }
}

/// Splits off the notice that Gemini CLI puts before the frame of an output that it has cut.
fn split_notice(text: &str) -> (&str, &str) {
    let end = if text.starts_with("Output too large. Showing first ") {
        text.find('\n').map(|end| end + 1)
    } else if text.starts_with("Tool output was too large and has been truncated.") {
        const LAST: &str = "\nTruncated part of the output:\n";
        text.find(LAST).map(|start| start + LAST.len())
    } else {
        None
    };
    text.split_at(end.unwrap_or_default())
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

/// `Output: ` and the output, then lines with names. Before 0.2x `Command: ` and `Directory: ` come first.
fn gemini_output(text: &str, exit_code: &mut Option<i64>) -> String {
    const NAMES: [&str; 5] =
        ["Exit Code: ", "Process Group PGID: ", "Signal: ", "Error: ", "Background PIDs: "];
    let command = text.strip_prefix("Command: ").and_then(|text| text.split_once("\nDirectory: "));
    let output = match command {
        Some((_, rest)) => rest.split_once("\nOutput: ").map(|(_, output)| output),
        None => text.strip_prefix("Output: "),
    };
    let Some(rest) = output else { return text.to_owned() };
    let mut lines: Vec<&str> = rest.lines().collect();
    while let Some(last) = lines.last().filter(|line| NAMES.iter().any(|name| line.starts_with(name))) {
        if let Some(code) = last.strip_prefix(NAMES[0]) {
            *exit_code = code.trim().parse().ok();
        }
        // The reason in this line is not a part of the frame.
        if last.starts_with(NAMES[3]) && !last.ends_with("(none)") {
            break;
        }
        lines.pop();
    }
    if lines == ["(empty)"] { String::new() } else { lines.join("\n") }
}

/// Returns the exit code that an agent wrote around the output of a command, for agents that record no number.
pub(crate) fn printed_code(output: &RawJson) -> Option<i64> {
    const WORDS: [&str; 4] = ["Exit code", "exit code", "Exit Code", "Process exited with code"];
    // Most outputs have no frame, and need not be decoded.
    let has_frame = WORDS.iter().any(|word| output.as_str().contains(word));
    if !has_frame {
        return None;
    }
    call_output(&output.read::<String>().ok()?).exit_code
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
        check(
            "Command: rm a\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 1\nSignal: 0\nProcess Group PGID: 5",
            "",
            Some(1),
        );
    }

    #[test]
    fn frame_after_a_notice_is_removed() {
        check(
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/x.txt\n<untrusted_context>\nOutput: a\n\n... [9 characters omitted] ...\n\nb\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>",
            "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /t/x.txt\na\n\n... [9 characters omitted] ...\n\nb",
            Some(3),
        );
        check(
            "Tool output was too large and has been truncated.\nThe full output has been saved to: /t/x\nTruncated part of the output:\nCommand: x\nDirectory: (root)\nOutput: a\n... [CONTENT TRUNCATED] ...\nb\nError: (none)\nExit Code: 1\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 5",
            "Tool output was too large and has been truncated.\nThe full output has been saved to: /t/x\nTruncated part of the output:\na\n... [CONTENT TRUNCATED] ...\nb",
            Some(1),
        );
        check("Output too large. Showing first words", "Output too large. Showing first words", None);
    }

    #[test]
    fn text_that_only_looks_like_a_frame_is_kept() {
        for text in ["Exit code soon", "My Output:\nx", "Output:\nx", "<exit code x>", "a <b> exit code 1"] {
            check(text, text, None);
        }
    }

    #[test]
    fn exit_codes_are_read_from_frames_only() {
        for (output, want) in [
            (r#""Exit code 101\nno""#, Some(101)),
            (
                r#""<untrusted_context>\nOutput: a\nExit Code: 3\nProcess Group PGID: 5\n</untrusted_context>""#,
                Some(3),
            ),
            (r#""it ended with exit code 3""#, None),
            (r#"{"output":"Exit code 1"}"#, None),
            ("null", None),
        ] {
            assert_eq!(printed_code(&RawJson::parse(output).unwrap()), want, "{output}");
        }
    }
}
