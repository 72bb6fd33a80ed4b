//! `steno search`: finds texts in all sessions, grouped by session.

mod text;

use steno_index::{Query, QueryError};
use steno_library::{Library, SearchHit, SearchReport, SessionHits};
use steno_model::RunId;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_views::count;
use steno_views::digest::TextKind;

use self::text::SearchText;
use super::session_filter::read_filter;
use crate::args::SearchArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::id_lines::event_handle;
use crate::output::{Output, notice};
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

/// How many bytes a token of a language model has, roughly.
const TOKEN_BYTES: usize = 4;

pub fn run(args: &SearchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let query = read_query(args)?;
    let filter = read_filter(&args.filter, &[])?;
    let library = super::index_progress::shown(runs::need_library(settings)?);
    let filter = library.resolve_filter(&filter, now().timestamp())?;
    let report = library.search(&query, &filter)?;
    if args.json {
        print_json(&library, &report, args, output)?;
    } else {
        print_text(&library, &report, args, output)?;
    }
    output.flush();
    if report.unread > 0 {
        notice(&format!("{} could not be read; `steno verify` says why", count(report.unread, "text")));
    }
    if report.sessions.is_empty() {
        return Err(Failure::nothing(format!("no text matches; searched {}", covered(&report)))
            .with_hint("`word*` finds words that begin so, `--exact` finds any text"));
    }
    Ok(Exit::Done)
}

fn read_query(args: &SearchArgs) -> Result<Query, Failure> {
    let text = args.query.join(" ");
    let query = if args.exact { Query::exactly(&text) } else { Query::parse(&text) };
    query.map_err(|error| {
        let hint = match &error {
            QueryError::Empty => "for punctuation, use `--exact`",
            QueryError::Open(_) => "close it, or use `--exact`",
            QueryError::Kind(_) => "use `in:` with `prompt`, `answer`, `thought`, `command` or `output`",
            QueryError::Exit(_) => "use a number, as in `exit:1`, or `exit:!0` for every other one",
        };
        Failure::usage(error.to_string()).with_hint(hint)
    })
}

/// Returns the matches of a session that are shown.
fn shown<'a>(session: &'a SessionHits, args: &SearchArgs) -> &'a [SearchHit] {
    let hits = &session.hits;
    if args.hits == 0 { hits } else { &hits[..hits.len().min(args.hits)] }
}

/// What is left of the output's budget.
struct Budget(Option<usize>);

impl Budget {
    fn of(args: &SearchArgs) -> Self {
        Self(args.budget.map(|tokens| tokens.saturating_mul(TOKEN_BYTES)))
    }

    /// Takes the place for a line; false if there is none left.
    fn take(&mut self, line: &str) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let bytes = line.len() + 1;
        let fits = bytes <= *left;
        *left = if fits { *left - bytes } else { 0 };
        fits
    }
}

fn print_text(
    library: &Library,
    report: &SearchReport,
    args: &SearchArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let lines = SearchText { ids: library.index()?, now: now(), width: output.width() };
    let mut budget = Budget::of(args);
    let sessions = limited(report, args);
    let mut hits_shown = 0;
    'all: for session in sessions {
        let mut block = vec![lines.session(session)];
        block.extend(shown(session, args).iter().map(|hit| lines.hit(hit)));
        for (number, line) in block.iter().enumerate() {
            if !budget.take(line) || output.is_broken() {
                break 'all;
            }
            output.line(line);
            hits_shown += u64::from(number > 0);
        }
        let more = session.hits.len().saturating_sub(shown(session, args).len()) as u64;
        if more > 0 {
            output.line(&format!("    {} more", count(more, "hit")));
        }
    }
    if !report.sessions.is_empty() {
        output.line(&footer(report, hits_shown));
    }
    Ok(())
}

fn limited<'a>(report: &'a SearchReport, args: &SearchArgs) -> &'a [SessionHits] {
    let sessions = &report.sessions;
    if args.limit == 0 { sessions } else { &sessions[..sessions.len().min(args.limit)] }
}

/// Returns the last line: what was found, and what was searched.
fn footer(report: &SearchReport, hits_shown: u64) -> String {
    let hits: u64 = report.sessions.iter().map(|session| session.hits.len() as u64).sum();
    let shown = if hits_shown < hits { format!(", {hits_shown} shown") } else { String::new() };
    let more = if hits_shown < hits { "; `--limit 0 --hits 0` shows all" } else { "" };
    format!(
        "{} in {}{shown}; searched {}{more}",
        count(hits, "hit"),
        count(report.sessions.len() as u64, "session"),
        covered(report)
    )
}

/// Describes what was searched.
fn covered(report: &SearchReport) -> String {
    let kinds: Vec<&str> = report.texts_searched.keys().map(|kind| plural(*kind)).collect();
    let texts = report.texts_searched.values().sum();
    format!(
        "{} of {}: {}",
        count(texts, "text"),
        count(report.sessions_searched, "session"),
        kinds.join(", ")
    )
}

fn plural(kind: TextKind) -> &'static str {
    match kind {
        TextKind::Prompt => "prompts",
        TextKind::Answer => "answers",
        TextKind::Thought => "thoughts",
        TextKind::Command => "commands",
        TextKind::Output => "outputs",
    }
}

fn print_json(
    library: &Library,
    report: &SearchReport,
    args: &SearchArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut budget = Budget::of(args);
    let ids = library.index()?;
    'all: for session in limited(report, args) {
        for hit in shown(session, args) {
            let handle = event_handle(ids, hit.run, hit.seq);
            let json = hit_json(session, hit, &handle);
            if !budget.take(json.as_str()) || output.is_broken() {
                break 'all;
            }
            output.json_line(json.as_str());
        }
    }
    output.json_line(covered_json(report).as_str());
    Ok(())
}

fn hit_json(session: &SessionHits, hit: &SearchHit, handle: &str) -> RawJson {
    let digest = &session.row.digest;
    RawJson::object(|object| {
        string(object, "type", Some("hit"));
        string(object, "session_run_id", Some(&digest.id.to_string()));
        string(object, "run_id", Some(&hit.run.to_string()));
        object.number("seq", hit.seq.get());
        string(object, "handle", Some(handle));
        string(object, "kind", Some(hit.kind.name()));
        string(object, "title", digest.title.as_deref());
        string(object, "project", session.row.project.as_deref());
        string(object, "branch", digest.branch.as_deref());
        string(object, "provider", digest.provider.as_deref());
        string(object, "last_at", digest.last_at.as_ref().map(ToString::to_string).as_deref());
        object.number("matches", hit.matches);
        string(object, "text", Some(&hit.snippet.text));
        let places: Vec<String> =
            hit.snippet.matches.iter().map(|place| format!("[{},{}]", place.start, place.end)).collect();
        object.json(
            "places",
            &RawJson::parse(&format!("[{}]", places.join(","))).unwrap_or_else(|_| RawJson::null()),
        );
    })
}

fn covered_json(report: &SearchReport) -> RawJson {
    let hits: u64 = report.sessions.iter().map(|session| session.hits.len() as u64).sum();
    RawJson::object(|object| {
        string(object, "type", Some("searched"));
        object.number("sessions", report.sessions_searched);
        object.number("sessions_found", report.sessions.len() as u64);
        object.number("hits", hits);
        for (kind, texts) in &report.texts_searched {
            object.number(plural(*kind), *texts);
        }
        object.number("unread", report.unread);
    })
}

fn string(object: &mut ObjectWriter<'_>, name: &'static str, text: Option<&str>) {
    let json = text.map_or_else(RawJson::null, |text| JsonString::from(text).to_json());
    object.json(name, &json);
}

/// The ids of runs and their sessions.
type Ids = steno_library::IdIndex<RunId>;
