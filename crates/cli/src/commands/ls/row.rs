//! A session as a row of the list.

use anstyle::{AnsiColor, Style};
use jiff::Zoned;
use steno_library::{IdIndex, ListState, ListedSession, LossKind};
use steno_model::RunId;
use steno_session::usage::TokenUsage;
use steno_views::cost::Prices;
use steno_views::{Lines, Rounding, count, cut, short_number, thousands, visible};

use super::layout::{Cell, Column, Row};
use crate::id_lines::{marked, project_name};
use crate::output::{joined_lines, state_word};
use crate::time_words::{TimeForm, time_word};

pub(super) struct RowWriter<'a> {
    pub(super) ids: &'a IdIndex<RunId>,
    pub(super) prices: &'a Prices,
    pub(super) now: Zoned,
    pub(super) time: TimeForm,
    pub(super) width: Option<usize>,
}

impl RowWriter<'_> {
    /// Returns the row of a session.
    pub(super) fn row(&self, session: &ListedSession) -> Row {
        let (dim, plain) = (Style::new().dimmed(), Style::new());
        let (mark, word, style) = look(session);
        let mut row = Row::new(Cell { text: mark.to_owned(), style }, self.id(session.id));
        if self.width.is_none() {
            // On a terminal, the last line explains the marks.
            row.put(Column::State, state_word(word).to_owned(), style);
        }
        let Some(listed) = &session.row else { return row };
        let digest = &listed.digest;
        let text = |text: Option<&str>| visible(text.unwrap_or_default(), Lines::Escape).into_owned();
        row.put(Column::Project, project_name(listed.project.as_deref()), plain);
        row.put(Column::Branch, text(digest.branch.as_deref()), dim);
        row.put(Column::Agent, text(digest.provider.as_deref().or(digest.name.as_deref())), dim);
        row.put(Column::Model, self.models(&digest.models), dim);
        row.put(Column::Title, text(digest.title.as_deref().or(digest.name.as_deref())), plain);
        row.note = self.note(digest.runs, listed.children);
        row.put(Column::Prompts, number(digest.prompts), plain);
        row.put(Column::Calls, number(digest.calls), plain);
        let failures =
            if digest.failures > 0 { format!("{}✗", thousands(digest.failures)) } else { String::new() };
        row.put(Column::Failures, failures, AnsiColor::Red.on_default());
        row.put(Column::Tokens, digest.usage.map(tokens).unwrap_or_default(), dim);
        let cost = digest.cost(self.prices).map(|cost| cost.text().replace("≥ ", "≥")).unwrap_or_default();
        row.put(Column::Cost, cost, plain);
        row.put(Column::Time, self.time(digest.last_at.as_ref()), dim);
        row
    }

    /// Returns the lines about a session of which the agent's disk lacks something. The command in them has flags that name
    /// the store.
    pub(super) fn gone(&self, session: &ListedSession, store_flags: &str) -> Vec<String> {
        let Some(loss) = &session.loss else { return Vec::new() };
        let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
        let at = loss.at.as_deref().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        let at = at.map(|at| time_word(at, &self.now, self.time)).unwrap_or_default();
        let when = match (loss.kind, self.time) {
            _ if at.is_empty() => String::new(),
            (LossKind::Deleted, TimeForm::Age) if at == "now" => ", last archived now".to_owned(),
            (LossKind::Deleted, TimeForm::Age) => format!(", last archived {at} ago"),
            (LossKind::Deleted, TimeForm::Local | TimeForm::Utc) => format!(", last archived {at}"),
            (LossKind::Shortened | LossKind::Rewritten, TimeForm::Age) if at == "now" => " now".to_owned(),
            (LossKind::Shortened | LossKind::Rewritten, TimeForm::Age) => format!(" {at} ago"),
            (LossKind::Shortened | LossKind::Rewritten, TimeForm::Local | TimeForm::Utc) => format!(" {at}"),
        };
        let digest = session.row.as_ref().map(|row| &row.digest);
        let project = project_name(session.row.as_ref().and_then(|row| row.project.as_deref()));
        let title = digest.and_then(|digest| digest.title.as_deref()).unwrap_or("(no title)");
        let title = visible(title, Lines::Escape);
        let (id, _) = self.id(session.id);
        let words = format!("{}{when}", loss.kind.name());
        let used = 2 + project.len() + 2 + words.len() + 40;
        let title = match self.width {
            Some(width) => cut(&title, width.saturating_sub(used).max(12)),
            None => title.into_owned(),
        };
        let gap = if project.is_empty() { "" } else { "  " };
        let command = loss.restore_command(&self.short(session.id), store_flags);
        vec![
            format!("{bold}{id}{bold:#}  {project}{gap}{title}  {dim}{words}{dim:#}"),
            format!("      {command}"),
        ]
    }

    /// Returns an id with its styles, and how wide it is: whole if the output may be read by a program.
    fn id(&self, id: RunId) -> (String, usize) {
        let whole = id.to_string();
        if self.width.is_none() {
            let len = whole.len();
            return (marked(&whole, self.ids.shortest(&whole, &id)), len);
        }
        let (short, bold) = (self.short(id), Style::new().bold());
        (format!("{bold}{short}{bold:#}"), short.len())
    }

    fn short(&self, id: RunId) -> String {
        let whole = id.to_string();
        self.ids.shortest(&whole, &id).split(&whole).1.to_owned()
    }

    fn time(&self, time: Option<&steno_model::Timestamp>) -> String {
        let time = time.and_then(steno_model::Timestamp::instant);
        time.map(|time| time_word(time, &self.now, self.time)).unwrap_or_default()
    }

    /// Returns the names of the models: all of them, or on a terminal the first in short.
    fn models(&self, models: &[String]) -> String {
        let names = match (self.width, models) {
            (_, []) => return String::new(),
            (None, models) => models.join(","),
            (Some(_), [model]) => short_model(model).to_owned(),
            (Some(_), [model, others @ ..]) => format!("{}+{}", short_model(model), others.len()),
        };
        visible(&names, Lines::Escape).into_owned()
    }

    /// Returns how many other runs a session has.
    fn note(&self, runs: u64, children: u64) -> String {
        let is_short = self.width.is_some();
        let runs = match runs {
            0 | 1 => None,
            runs if is_short => Some(format!("×{}", thousands(runs))),
            runs => Some(count(runs, "run")),
        };
        let children = match children {
            0 => None,
            children if is_short => Some(format!("+{}", thousands(children))),
            1 => Some("1 child".to_owned()),
            children => Some(format!("{} children", thousands(children))),
        };
        let parts: Vec<String> = runs.into_iter().chain(children).collect();
        match parts.len() {
            0 => String::new(),
            _ if is_short => parts.join(" "),
            _ => format!("({})", parts.join(", ")),
        }
    }
}

/// The mark of a session of which the agent's disk lacks something.
const LOST: &str = "◌";

/// Returns the mark of a session, the word for its state, and their style.
fn look(session: &ListedSession) -> (&'static str, &'static str, Style) {
    let (dim, red) = (Style::new().dimmed(), AnsiColor::Red.on_default());
    let lost = session.loss.as_ref().map(|loss| match loss.kind {
        LossKind::Deleted => (LOST, "gone", dim),
        LossKind::Shortened => (LOST, "shortened", dim),
        LossKind::Rewritten => (LOST, "rewritten", dim),
    });
    let ended = |mark, style| lost.unwrap_or((mark, session.state.name(), style));
    match session.state {
        ListState::Live => ("●", "live", AnsiColor::Green.on_default()),
        ListState::Waiting => ("?", "waiting", AnsiColor::Yellow.on_default().bold()),
        ListState::Damaged => ("!", "damaged", red.bold()),
        ListState::Unreadable => ("!", "unreadable", red.bold()),
        ListState::Done => ended("○", dim),
        ListState::Failed => ended("✗", red),
        ListState::Interrupted => ended("⊘", Style::new()),
        ListState::Open | ListState::Empty => ended("·", dim),
    }
}

/// Returns the last line on a terminal: how many sessions there are, and what the marks mean.
pub(super) fn footer(shown: &[ListedSession], total: usize, width: Option<usize>) -> Vec<String> {
    let mut parts = vec![count(total as u64, "session")];
    if shown.len() < total {
        parts = vec![format!(
            "{} of {}; `--limit 0` lists all",
            thousands(shown.len() as u64),
            count(total as u64, "session")
        )];
    }
    let mut seen: Vec<&str> = Vec::new();
    for session in shown {
        let (mark, word, _) = look(session);
        let meaning = match word {
            "open" => "end not recorded",
            word if mark != LOST => word,
            _ => "deleted, shortened or rewritten by the agent: `steno ls --gone`",
        };
        if word != "done" && !seen.contains(&meaning) {
            seen.push(meaning);
            parts.push(format!("{mark} {meaning}"));
        }
    }
    let dim = Style::new().dimmed();
    let lines = joined_lines(&parts, "   ", width).into_iter();
    lines.map(|line| format!("{dim}{line}{dim:#}")).collect()
}

/// Returns a number, and nothing for zero.
fn number(number: u64) -> String {
    if number == 0 { String::new() } else { thousands(number) }
}

/// Returns how many tokens were used, in a few characters.
fn tokens(usage: TokenUsage) -> String {
    let tokens = usage.tokens;
    let total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
    let sign = if usage.is_lower_bound { "≥" } else { "" };
    format!("{sign}{}", short_number(total, Rounding::of(usage.is_lower_bound)))
}

/// Returns the name of a model without its maker and its date.
fn short_model(model: &str) -> &str {
    let name = model.strip_prefix("claude-").unwrap_or(model);
    let is_date = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    name.rsplit_once('-').filter(|(_, date)| is_date(date)).map_or(name, |(name, _)| name)
}
