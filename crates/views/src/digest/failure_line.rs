//! The line of an output that says most about a failure, found in the same way for every agent.

use steno_session::call_output;

/// Words of a line that reports an error.
const ERROR_WORDS: [&str; 10] = [
    "error",
    "failed",
    "fail:",
    "fatal",
    "panicked",
    "exception",
    "not found",
    "denied",
    "cannot",
    "no such",
];
/// What shows that a line with such a word reports no error. No digit is before the first two.
const NO_ERRORS: [&str; 2] = ["0 errors", "0 failed"];
const SUCCESS_WORDS: [&str; 2] = ["no errors", "... ok"];

/// How much a line says about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LineRank {
    /// It has a word for errors.
    Mention,
    /// A message that begins with such a word, such as `error: no such file`.
    Message,
    /// A failed assertion, or an exception with its message.
    Reason,
}

/// Returns the line of an output that says most about why a call failed; `None` if the output is empty.
///
/// What an agent puts around an output for the model is not looked at. The first line with the reason of a test or a
/// program is taken: a failed assertion, or an exception with its message. If there is none, it is the first line that
/// begins with a word for errors, then the first one that has such a word, then the last line.
#[must_use]
pub fn failure_line(output: &str) -> Option<String> {
    let output = call_output(output).text;
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty() && !is_frame(line));
    let mut best: Option<(LineRank, &str)> = None;
    for line in lines() {
        let Some(rank) = rank_of(line) else { continue };
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, line));
        }
    }
    best.map(|(_, line)| line).or_else(|| lines().next_back()).map(str::to_owned)
}

/// Tells whether a line is drawn around others: the rules of test runners, and tags that some agents write.
fn is_frame(line: &str) -> bool {
    let is_rule = ["__", "==", "--", "──"].iter().any(|start| line.starts_with(start));
    (is_rule && !line.starts_with("--- FAIL")) || (line.starts_with('<') && line.ends_with('>'))
}

fn rank_of(line: &str) -> Option<LineRank> {
    if line.starts_with("E  ") || line.starts_with("assertion ") || is_exception(line) {
        return Some(LineRank::Reason);
    }
    let lower = line.to_lowercase();
    let is_message = ["error:", "error[", "fatal:"].iter().any(|start| lower.starts_with(start))
        || [": error:", ": fatal:", ": command not found", ": no such file", ": permission denied"]
            .iter()
            .any(|part| lower.contains(part));
    if is_message {
        return Some(LineRank::Message);
    }
    if is_success(&lower) && !lower.contains(" failed") {
        return None;
    }
    ERROR_WORDS.iter().any(|word| lower.contains(word)).then_some(LineRank::Mention)
}

/// Tells whether a line in lower case says that there are no errors, or how many tests passed.
fn is_success(lower: &str) -> bool {
    let is_after_digit = |at: usize| lower[..at].ends_with(|letter: char| letter.is_ascii_digit());
    let is_none = |word: &&str| lower.match_indices(*word).any(|(at, _)| !is_after_digit(at));
    NO_ERRORS.iter().any(is_none)
        || SUCCESS_WORDS.iter().any(|word| lower.contains(word))
        || lower.match_indices(" passed").any(|(at, _)| is_after_digit(at))
}

/// Tells whether a line is an exception with its message, such as `ValueError: it is empty`.
fn is_exception(line: &str) -> bool {
    let Some((name, message)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._$".contains(letter));
    let has_kind = |kind: &str| name.len() > kind.len() && name.ends_with(kind);
    is_name && !message.is_empty() && (has_kind("Error") || has_kind("Exception"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, want: Option<&str>) {
        assert_eq!(failure_line(output).as_deref(), want, "{output:?}");
    }

    #[test]
    fn frames_of_every_agent_give_the_same_line() {
        let printed = "collecting\nE       AssertionError: assert 1 == 3\n1 failed in 0.1s";
        for output in [
            printed.to_owned(),
            format!("Exit code 1\n{printed}"),
            format!("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n{printed}"),
            format!("Chunk ID: 8a\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n{printed}"),
            format!("{printed}\n<shellId: 2 completed with exit code 1>"),
            format!(
                "<untrusted_context>\nOutput: {printed}\nExit Code: 1\nProcess Group PGID: 5\n</untrusted_context>"
            ),
        ] {
            check(&output, Some("E       AssertionError: assert 1 == 3"));
        }
    }

    #[test]
    fn reasons_come_before_messages_and_these_before_mentions() {
        check(
            "a failed test\nerror: test failed\nassertion `left == right` failed",
            Some("assertion `left == right` failed"),
        );
        check(
            "2 errors so far\nsrc/a.c:3: error: expected `;`\nerror: stop",
            Some("src/a.c:3: error: expected `;`"),
        );
        check(
            "Traceback (most recent call last):\n  x = f()\nValueError: it is empty",
            Some("ValueError: it is empty"),
        );
        check("bash: rg: command not found", Some("bash: rg: command not found"));
        check("one\nthe build has failed\nthree", Some("the build has failed"));
        check("one\n  two \n\n", Some("two"));
    }

    #[test]
    fn success_and_frames_are_no_failures() {
        check("0 errors\n12 passed\ndone", Some("done"));
        check("Found 20 errors\ndone", Some("Found 20 errors"));
        check("a.c:3: error: wrong type passed to f\ndone", Some("a.c:3: error: wrong type passed to f"));
        check("cannot use what was passed\ndone", Some("cannot use what was passed"));
        check("--- FAIL: TestX (0.00s)\nok", Some("--- FAIL: TestX (0.00s)"));
        check("test parse_error ... ok\nstopped", Some("stopped"));
        check("==== 1 failed ====\n____ test_a ____\nnot equal", Some("not equal"));
        check("<output>\nboom\n</output>\n<shellId: 2 completed with exit code 3>", Some("boom"));
        check("Error: ", Some("Error:"));
        check("Exit code 2\n", None);
        check("", None);
    }
}
