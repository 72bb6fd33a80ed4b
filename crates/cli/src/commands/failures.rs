//! `steno failures`: calls, commands and turns that failed, with exit code and where.

use anstyle::{AnsiColor, Style};
use steno_index::{CallFilter, IndexedCall};
use steno_library::{CallOutput, Library};
use steno_model::json::RawJson;
use steno_views::digest::{arguments_text, failure_line};
use steno_views::nodes::FileDiff;
use steno_views::screen::{call_text, command_line};
use steno_views::{Lines, columns_of, count, cut, thousands, visible};

use super::call_lines::{CallLines, check_matches, shown_count, text};
use super::session_filter::read_filter;
use crate::args::FailuresArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

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
        output.line(&format!("{dim}{} of {total}; `--limit 0` lists all{dim:#}", thousands(shown as u64)));
    }
    if list.calls.is_empty() {
        check_matches(&filter, &list)?;
        return Err(Failure::empty("nothing failed".to_owned())
            .with_hint("`steno ls --failed` also lists sessions whose last turn failed"));
    }
    Ok(Exit::Done)
}

/// A call that failed, with what its transcript has of it.
struct FailedCall<'a> {
    call: &'a IndexedCall,
    arguments: Option<RawJson>,
    diffs: Vec<FileDiff>,
    output: Option<CallOutput>,
}

impl<'a> FailedCall<'a> {
    fn read(library: &Library, call: &'a IndexedCall) -> Self {
        let (arguments, diffs) = (library.call_arguments(call), library.call_diffs(call));
        Self { call, arguments, diffs, output: library.call_output(call) }
    }

    fn is_class(&self, class: &str) -> bool {
        self.call.call.digest.class.as_deref() == Some(class)
    }

    /// Returns the text of the error that it is; `None` for calls and commands.
    fn error(&self) -> Option<&str> {
        self.output.as_ref().filter(|_| self.is_class("error")).map(|output| output.text.as_str())
    }

    /// Returns the command that it ran, else its arguments as text.
    fn command(&self) -> Option<String> {
        let arguments = self.arguments.as_ref()?;
        let command = if self.is_class("command") { command_line(arguments) } else { None };
        command.or_else(|| arguments_text(arguments))
    }

    /// Returns the line of its output that says most about the failure.
    fn line(&self) -> Option<String> {
        let output = self.output.as_ref()?;
        output.errors.as_deref().and_then(failure_line).or_else(|| failure_line(&output.text))
    }
}

fn print(lines: &CallLines<'_>, failure: &FailedCall<'_>, output: &mut Output) {
    let call = failure.call;
    let (red, dim) = (AnsiColor::Red.on_default(), Style::new().dimmed());
    let (start, used) = lines.start(call);
    let digest = &call.call.digest;
    let exit = digest.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
    let end = format!("✗{exit}");
    let used = used + columns_of(&end) + 2;
    let row = lines.list.sessions.get(&call.root);
    let directory = row.and_then(|row| row.digest.directory.as_deref());
    let words = match failure.error() {
        Some(error) => error_words(error),
        None => call_text(digest, failure.arguments.as_ref(), &failure.diffs, directory),
    };
    let shown = fit(&visible(&words, Lines::Escape), lines.width.map(|width| width.saturating_sub(used)));
    output.line(format!("{start}{red}{end}{red:#}  {shown}").trim_end());
    if let Some(line) =
        failure.line().filter(|line| failure.error().is_none() || !words.contains(line.as_str()))
    {
        let line = fit(&visible(&line, Lines::Escape), lines.width.map(|width| width.saturating_sub(5)));
        output.line(&format!("     {dim}{line}{dim:#}"));
    }
}

/// Returns the first line of an error, which names itself an error.
fn error_words(error: &str) -> String {
    let line = error.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.to_lowercase().contains("error") { line.to_owned() } else { format!("error: {line}") }
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
    let paths = failure.diffs.iter().filter_map(|diff| diff.path.as_deref());
    RawJson::object(|object| {
        lines.fields(failure.call, object);
        text(object, "class", digest.class.as_deref());
        object.json("exit_code", &digest.exit_code.map_or_else(RawJson::null, RawJson::from));
        object.json("duration_ms", &digest.duration_ms.map_or_else(RawJson::null, RawJson::from));
        text(object, "command", failure.command().as_deref());
        object.json("paths", &RawJson::array(paths.map(RawJson::string)));
        text(object, "line", failure.line().as_deref());
        text(object, "output", failure.output.as_ref().map(|output| output.text.as_str()));
    })
}
