//! `steno search`: finds texts in all sessions, grouped by session.

mod text;

use steno_index::{Query, QueryError};
use steno_library::{IdIndex, SearchLimits, SearchReport, SessionHits, plural};
use steno_model::RunId;
use steno_views::{count, thousands};

use self::text::SearchText;
use super::session_filter::{read_filter, unknown_agent_hint};
use crate::args::SearchArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

/// How many bytes a token of a language model has, roughly.
const TOKEN_BYTES: usize = 4;
/// What the last line takes of a budget.
const FOOTER_BYTES: usize = 400;

pub fn run(args: &SearchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let query = read_query(args)?;
    let filter = read_filter(&args.filter, &[])?;
    let library = runs::need_library(settings)?;
    let filter = library.resolve_filter(&filter, now().timestamp())?;
    let search = library.prepare_search(&query, &filter)?;
    let ids = library.index()?;
    let lines = SearchText { ids, now: now(), width: output.width() };
    if !args.json && !args.no_pager {
        output.page();
    }
    let mut printer = Printer::of(args, ids, &lines, output);
    let all_if_zero = |limit: usize| if limit == 0 { usize::MAX } else { limit };
    let sessions = all_if_zero(args.limit).saturating_add(args.skip);
    let limits = SearchLimits { sessions, hits: all_if_zero(args.hits) };
    let report = search.run(limits, |session| printer.session(&session))?;
    printer.finish(&report);
    if report.sessions_found == 0 {
        return Err(Failure::empty(format!("no text matches; searched {}", covered(&report)))
            .with_hint(no_hit_hint(args)));
    }
    if report.sessions_found <= args.skip as u64 {
        let found = count(report.sessions_found, "session");
        return Err(Failure::empty(format!("{found} found, and all of them left out by `--skip`")));
    }
    Ok(Exit::Done)
}

/// Returns what to try after a search without a hit.
fn no_hit_hint(args: &SearchArgs) -> String {
    const FILTERS: [&str; 6] = ["agent", "branch", "model", "project", "since", "until"];
    if let Some(hint) = unknown_agent_hint(args.filter.agent.as_deref()) {
        return hint;
    }
    let words = || args.query.iter().flat_map(|text| text.split_whitespace());
    let is_operator = |word: &str| ["AND", "NOT", "OR"].contains(&word) || word.starts_with('-');
    if !args.exact && words().any(is_operator) {
        return "every word must be there: `OR`, `AND`, `NOT` and `-word` are searched as words".to_owned();
    }
    // A query has a field of some other names, such as `tool:`.
    let mut fields = words().filter_map(|word| word.split_once(':'));
    match fields.find(|(name, _)| FILTERS.contains(name)) {
        Some((name, _)) => format!("`{name}:` was searched as text; the filter is `--{name}`"),
        None => "`word*` finds longer words too, `--exact` finds any text".to_owned(),
    }
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

/// What is left of the output's budget.
struct Budget(Option<usize>);

impl Budget {
    fn of(args: &SearchArgs) -> Self {
        let bytes = |tokens: usize| tokens.saturating_mul(TOKEN_BYTES).saturating_sub(FOOTER_BYTES);
        Self(args.budget.map(bytes))
    }

    /// Takes the place for lines; false if there is none left.
    fn take(&mut self, lines: &[&str]) -> bool {
        let Some(left) = &mut self.0 else { return true };
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let fits = bytes <= *left;
        *left = if fits { *left - bytes } else { 0 };
        fits
    }
}

/// Prints sessions with matches as they are found.
struct Printer<'a> {
    args: &'a SearchArgs,
    ids: &'a IdIndex<RunId>,
    lines: &'a SearchText<'a>,
    output: &'a mut Output,
    budget: Budget,
    /// Whether the limits allow no more.
    is_full: bool,
    sessions_skipped: usize,
    /// How many sessions were shown, the last one perhaps without its last hits.
    sessions_shown: usize,
    /// Whether the last one has other hits than were shown, which the limits would allow.
    is_cut: bool,
    hits_shown: u64,
}

impl<'a> Printer<'a> {
    fn of(
        args: &'a SearchArgs,
        ids: &'a IdIndex<RunId>,
        lines: &'a SearchText<'a>,
        output: &'a mut Output,
    ) -> Self {
        let budget = Budget::of(args);
        Self {
            args,
            ids,
            lines,
            output,
            budget,
            is_full: false,
            sessions_skipped: 0,
            sessions_shown: 0,
            is_cut: false,
            hits_shown: 0,
        }
    }

    /// Prints a session, unless a limit is reached. False if nobody reads the output.
    fn session(&mut self, session: &SessionHits) -> bool {
        if self.sessions_skipped < self.args.skip {
            self.sessions_skipped += 1;
            return !self.output.is_broken();
        }
        self.is_full |= self.args.limit > 0 && self.sessions_shown >= self.args.limit;
        if !self.is_full {
            let is_any = if self.args.json { self.json(session) } else { self.text(session) };
            self.sessions_shown += usize::from(is_any);
            // In a pipe the first sessions are there while others are still searched.
            self.output.flush();
        }
        !self.output.is_broken()
    }

    /// Prints the hits of a session; false if there is place for none.
    fn text(&mut self, session: &SessionHits) -> bool {
        let lines = self.lines;
        let mut head = Some(lines.session(session));
        for hit in lines.hits(&session.hits) {
            // A session is not named without a hit.
            let wanted: Vec<&str> = head.iter().map(String::as_str).chain([hit.as_str()]).collect();
            // A search shows one hit at least, so that reading on comes to an end.
            if !self.budget.take(&wanted) && self.hits_shown > 0 {
                self.is_full = true;
                self.is_cut = head.is_none();
                return self.is_cut;
            }
            head.take().iter().for_each(|head| self.output.line(head));
            self.output.line(&hit);
            self.hits_shown += 1;
        }
        if session.more > 0 {
            let more = format!("    {}", count(session.more, "more hit"));
            self.budget.take(&[&more]);
            self.output.line(&more);
        }
        true
    }

    /// Prints the hits of a session; false if there is place for none.
    fn json(&mut self, session: &SessionHits) -> bool {
        for (number, hit) in session.hits.iter().enumerate() {
            let json = hit.to_json(session, self.ids);
            if !self.budget.take(&[json.as_str()]) && self.hits_shown > 0 {
                self.is_full = true;
                self.is_cut = number > 0;
                return self.is_cut;
            }
            self.output.json_line(json.as_str());
            self.hits_shown += 1;
        }
        true
    }

    /// Returns how many sessions to skip to read on; `None` if all were shown. One that was cut comes again, unless it
    /// would be cut again.
    fn next_skip(&self, report: &SearchReport) -> Option<u64> {
        let again = usize::from(self.is_cut && self.sessions_shown > 1);
        let next = (self.sessions_skipped + self.sessions_shown - again) as u64;
        (next < report.sessions_found).then_some(next)
    }

    fn finish(self, report: &SearchReport) {
        let is_beyond = report.sessions_found <= self.sessions_skipped as u64;
        let next = self.next_skip(report);
        if self.args.json {
            self.output.json_line(report.to_json(next).as_str());
        } else if !is_beyond {
            for line in self.lines.broken(&footer(report, self.hits_shown, next)) {
                self.output.line(&line);
            }
        }
        self.output.flush();
    }
}

/// Returns the last line: what was found, and what was searched.
fn footer(report: &SearchReport, hits_shown: u64, next: Option<u64>) -> String {
    let hits = report.hits;
    let shown = if hits_shown < hits { format!(", {} shown", thousands(hits_shown)) } else { String::new() };
    let more = match next {
        Some(next) => format!("; `--skip {next}` shows other sessions, `--limit 0 --hits 0` all hits"),
        None if hits_shown < hits => "; `--limit 0 --hits 0` shows all".to_owned(),
        None => String::new(),
    };
    format!(
        "{} in {}{shown}; searched {}{more}",
        count(hits, "hit"),
        count(report.sessions_found, "session"),
        covered(report)
    )
}

/// Describes what was searched, and what could not be.
fn covered(report: &SearchReport) -> String {
    let kinds: Vec<&str> = report.texts_searched.keys().map(|kind| plural(*kind)).collect();
    let texts = report.texts_searched.values().sum();
    let mut words = format!(
        "{} of {}: {}",
        count(texts, "text"),
        count(report.sessions_searched, "session"),
        kinds.join(", ")
    );
    if report.unread > 0 {
        words += &format!("; {} of them could not be read", count(report.unread, "text"));
    }
    if report.runs_damaged > 0 {
        words += &format!("; {} searched only up to the damage", count(report.runs_damaged, "run"));
    }
    if report.unread > 0 || report.runs_damaged > 0 {
        words += " (`steno verify` says where)";
    }
    words
}
