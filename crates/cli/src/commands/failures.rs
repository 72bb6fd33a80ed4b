//! `steno failures`: commands and calls that failed, with exit code and where.

use anstyle::{AnsiColor, Style};
use steno_index::{CallFilter, IndexedCall};
use steno_library::Library;
use steno_model::json::RawJson;
use steno_session::PayloadFields;
use steno_views::digest::arguments_text;
use steno_views::{Lines, columns_of, count, cut, visible};

use super::call_lines::{CallLines, check_matches, shown_count, text};
use super::session_filter::read_filter;
use crate::args::FailuresArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

/// The words of a line that says what went wrong.
const ERROR_WORDS: [&str; 9] =
    ["error", "failed", "fatal", "panicked", "exception", "not found", "denied", "cannot", "no such"];

pub fn run(args: &FailuresArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let filter = read_filter(&args.filter, &[])?;
    let library = runs::need_library(settings)?;
    let now = now();
    let list = library.calls(&CallFilter::Failed, &filter, now.timestamp())?;
    if !args.json && !args.no_pager {
        output.page();
    }
    let lines =
        CallLines { ids: library.index()?, list: &list, now, time: args.time.form(), width: output.width() };
    let shown = shown_count(args.limit, output.width(), list.calls.len());
    for call in &list.calls[..shown] {
        let failure = FailedCall::read(&library, call);
        if args.json {
            output.json_line(json(&lines, &failure).as_str());
        } else {
            print(&lines, &failure, output);
        }
        if output.is_broken() {
            break;
        }
    }
    if shown < list.calls.len() && !args.json {
        let dim = Style::new().dimmed();
        let total = count(list.calls.len() as u64, "failure");
        output.line(&format!("{dim}{shown} of {total}; `--limit 0` lists all{dim:#}"));
    }
    if list.calls.is_empty() {
        check_matches(&filter, &list)?;
        return Err(Failure::empty("no call failed".to_owned())
            .with_hint("`steno ls --failed` also lists sessions whose last turn failed"));
    }
    Ok(Exit::Done)
}

/// A call that failed, with what its transcript has of it.
struct FailedCall<'a> {
    call: &'a IndexedCall,
    /// The command that it ran, else its arguments as text.
    command: Option<String>,
    /// The files that it should have changed.
    paths: Vec<String>,
    result: Option<String>,
}

impl<'a> FailedCall<'a> {
    fn read(library: &Library, call: &'a IndexedCall) -> Self {
        let command = library.call_arguments(call).and_then(|arguments| {
            let fields = PayloadFields::parse(arguments.as_str());
            let command = ["command", "cmd"].iter().find_map(|name| fields.text(name));
            command.map(std::borrow::Cow::into_owned).or_else(|| arguments_text(&arguments))
        });
        let paths = library.call_diffs(call).into_iter().filter_map(|diff| diff.path).collect();
        Self { call, command, paths, result: library.call_output(call) }
    }

    /// Returns what a line says that it did: the files if it should have changed some, else its command.
    fn words(&self) -> String {
        if self.paths.is_empty() { self.command.clone().unwrap_or_default() } else { self.paths.join(", ") }
    }
}

fn print(lines: &CallLines<'_>, failure: &FailedCall<'_>, output: &mut Output) {
    let call = failure.call;
    let (red, dim) = (AnsiColor::Red.on_default(), Style::new().dimmed());
    let (start, used) = lines.start(call);
    let digest = &call.call.digest;
    let exit = digest.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
    let is_command = digest.class.as_deref() == Some("command");
    let what = if is_command { "$".to_owned() } else { visible(&digest.tool, Lines::Escape).into_owned() };
    let end = format!("✗{exit}");
    let used = used + columns_of(&end) + 2 + columns_of(&what) + 1;
    let words = failure.words();
    let words = fit(&visible(&words, Lines::Escape), lines.width.map(|width| width.saturating_sub(used)));
    output.line(format!("{start}{red}{end}{red:#}  {what} {words}").trim_end());
    if let Some(line) = failure.result.as_deref().and_then(telling_line) {
        let line = fit(&visible(line, Lines::Escape), lines.width.map(|width| width.saturating_sub(5)));
        output.line(&format!("     {dim}{line}{dim:#}"));
    }
}

/// Returns the line of an output that says what went wrong: that of a failed assertion, else one that names an error, else
/// the last one.
fn telling_line(output: &str) -> Option<&str> {
    // Test runners draw rules around names.
    let is_frame = |line: &str| ["Exit code", "__", "=="].iter().any(|start| line.starts_with(start));
    // Some agents put the output between tags.
    let is_tag = |line: &str| line.starts_with('<') && line.ends_with('>');
    let is_text = |line: &&str| !line.is_empty() && !is_frame(line) && !is_tag(line);
    let lines = || output.lines().map(str::trim).filter(is_text);
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        ERROR_WORDS.iter().any(|word| line.contains(word))
    };
    let assertion = lines().find(|line| line.starts_with("E  "));
    assertion.or_else(|| lines().find(is_error)).or_else(|| lines().next_back())
}

/// Cuts a text to a number of columns, if there is one.
fn fit(text: &str, columns: Option<usize>) -> String {
    match columns {
        Some(columns) if columns_of(text) > columns => cut(text, columns.saturating_sub(1)),
        Some(_) | None => text.to_owned(),
    }
}

fn json(lines: &CallLines<'_>, failure: &FailedCall<'_>) -> RawJson {
    let digest = &failure.call.call.digest;
    RawJson::object(|object| {
        lines.fields(failure.call, object);
        text(object, "class", digest.class.as_deref());
        object.json("exit_code", &digest.exit_code.map_or_else(RawJson::null, RawJson::from));
        object.json("duration_ms", &digest.duration_ms.map_or_else(RawJson::null, RawJson::from));
        text(object, "command", failure.command.as_deref());
        object.json("paths", &RawJson::array(failure.paths.iter().map(|path| RawJson::string(path))));
        text(object, "output", failure.result.as_deref());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_line_names_the_error_or_is_the_last() {
        for (output, want) in [
            (
                "Exit code 1\n\nrunning\nE  AssertionError: 1 == 3\n2 failed",
                Some("E  AssertionError: 1 == 3"),
            ),
            ("one\n  two \n\n", Some("two")),
            ("<output>\nboom\n</output>\n<shellId: 2 completed with exit code 3>", Some("boom")),
            ("Exit code 2\n", None),
            ("", None),
        ] {
            assert_eq!(telling_line(output), want, "{output:?}");
        }
    }
}
