//! Rows of usage as a table for people.

use std::collections::BTreeSet;

use anstyle::Style;
use steno_library::{IdIndex, UsageColumn, UsageRow, UsageTable};
use steno_model::RunId;
use steno_views::cost::Prices;
use steno_views::{Lines, columns_of, count, cut, padding, visible};

use super::layout::Layout;
use crate::id_lines::{IdMarks, shortest_part};
use crate::output::{Output, wrapped_message};

/// How many columns of a name are shown at least.
const NAME_COLUMNS_MIN: usize = 12;
/// How much room is kept for titles.
const TITLE_COLUMNS: usize = 30;
/// How many characters of a session's id are shown at least, if there is little room.
const ID_CHARS_MIN: usize = 8;
/// What a bar is made of: the parts of a column, an eighth each.
const PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// How a table is drawn.
pub struct TableStyle<'a> {
    pub marks: &'a IdMarks,
    /// The ids of the store, if sessions are named: a terminal shows the shortest part of each.
    pub ids: Option<&'a IdIndex<RunId>>,
    /// The width of the terminal, if it is one.
    pub width: Option<usize>,
    /// The user's home.
    pub home: Option<&'a str>,
    pub prices: &'a Prices,
}

/// Prints rows and their total. On a terminal it fits, and each row has a bar.
pub fn print_table(table: &UsageTable, style: &TableStyle<'_>, output: &mut Output) {
    for line in lines(table, style) {
        output.line(&line);
    }
}

fn lines(table: &UsageTable, style: &TableStyle<'_>) -> Vec<String> {
    let by: Vec<UsageColumn> =
        table.rows.first().map_or_else(Vec::new, |row| row.group.iter().map(|(column, _)| *column).collect());
    let mut names: Vec<Vec<String>> = table.rows.iter().map(|row| style.names(row)).collect();
    let has_titles = table.rows.iter().any(|row| row.title.is_some());
    if has_titles && style.width.is_some() {
        shorten_ids(&mut names, &by);
    }
    let mut name_widths = name_widths(&by, &names);
    let total_columns = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    let title_columns = if has_titles { TITLE_COLUMNS } else { 0 };
    let (layout, bar) = Layout::choose(table, total_columns(&name_widths) + title_columns, style.width);
    let numbers = layout.widths(table);
    if let Some(width) = style.width {
        let room = width.saturating_sub(numbers.iter().map(|width| width + 2).sum());
        shorten(&mut names, &mut name_widths, &by, room);
    }
    let bold = Style::new().bold();
    let line = |names: &[String], cells: &[String]| {
        let names = names.iter().zip(&name_widths).zip(&by).map(|((name, width), column)| {
            let padding = padding(name, *width);
            let name = if *column == UsageColumn::Session { style.marks.mark(name) } else { name.clone() };
            format!("{name}{padding}")
        });
        let cells =
            cells.iter().zip(&numbers).map(|(cell, width)| format!("{}{cell}", padding(cell, *width)));
        names.chain(cells).collect::<Vec<_>>().join("  ")
    };
    let header: Vec<String> = by.iter().map(|column| column.name().to_owned()).collect();
    let columns: Vec<String> = layout.header(table).into_iter().map(str::to_owned).collect();
    let mut lines = vec![format!("{bold}{}{bold:#}", line(&header, &columns).trim_end())];
    let largest = table.rows.iter().map(weight).max().unwrap_or(0);
    for (row, names) in table.rows.iter().zip(&names) {
        let end = if has_titles {
            let used = name_widths.iter().chain(&numbers).map(|width| width + 2).sum();
            title_of(row, style.width.map(|width| width.saturating_sub(used)))
        } else {
            bar_of(weight(row), largest, bar)
        };
        lines.push(format!("{}  {end}", line(names, &layout.cells(row, table))).trim_end().to_owned());
    }
    let mut total = vec![String::new(); by.len()];
    if let Some(cell) = total.first_mut() {
        "total".clone_into(cell);
    }
    lines.push(format!("{bold}{}{bold:#}", line(&total, &layout.cells(&table.total, table)).trim_end()));
    lines.extend(notes(table, style).iter().map(|note| wrapped_message(note, 0, style.width)));
    lines
}

impl TableStyle<'_> {
    /// Returns the names of a row for people.
    fn names(&self, row: &UsageRow) -> Vec<String> {
        let name = |(column, value): &(UsageColumn, String)| match (column, &**value) {
            (_, "") => "-".to_owned(),
            (UsageColumn::Session, id) => match (self.ids, RunId::parse(id)) {
                (Some(ids), Ok(run)) if self.width.is_some() => shortest_part(ids, run),
                (_, _) => visible(id, Lines::Escape).into_owned(),
            },
            (UsageColumn::Project, path) => {
                let below = self.home.and_then(|home| path.strip_prefix(home));
                let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
                let path = below.map_or_else(|| path.to_owned(), |rest| format!("~{rest}"));
                visible(&path, Lines::Escape).into_owned()
            }
            (_, value) => visible(value, Lines::Escape).into_owned(),
        };
        row.group.iter().map(name).collect()
    }
}

fn name_widths(by: &[UsageColumn], names: &[Vec<String>]) -> Vec<usize> {
    let width = |(place, column): (usize, &UsageColumn)| {
        let names = names.iter().map(|row| columns_of(&row[place]));
        // The last row is called `total`.
        names.max().unwrap_or(0).max(column.name().len()).max("total".len())
    };
    by.iter().enumerate().map(width).collect()
}

/// Shortens names until they fit: ids of sessions to their beginning, the longest others in the middle. Times stay whole, and
/// ids stay unique.
fn shorten(names: &mut [Vec<String>], widths: &mut Vec<usize>, by: &[UsageColumn], room: usize) {
    let columns = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    if columns(widths) <= room {
        return;
    }
    shorten_ids(names, by);
    *widths = name_widths(by, names);
    while columns(widths) > room {
        let can_give_way = |place: usize| !by[place].is_time() && by[place] != UsageColumn::Session;
        let places = widths.iter().enumerate().filter(|(place, _)| can_give_way(*place));
        let Some((place, width)) = places.max_by_key(|(_, width)| **width) else { return };
        if *width <= NAME_COLUMNS_MIN {
            return;
        }
        let width = width.saturating_sub(columns(widths) - room).max(NAME_COLUMNS_MIN);
        for row in names.iter_mut() {
            row[place] = without_middle(&row[place], width);
        }
        widths[place] = width;
    }
}

/// Shortens whole ids of sessions to a beginning that no other session of the table has. A part of an id that names a
/// session of the store is not shortened further.
fn shorten_ids(names: &mut [Vec<String>], by: &[UsageColumn]) {
    let beginning = |name: &str, chars: usize| match RunId::parse(name) {
        Ok(_) => name.chars().take(chars).collect(),
        Err(_) => name.to_owned(),
    };
    for (place, _) in by.iter().enumerate().filter(|(_, column)| **column == UsageColumn::Session) {
        let ids: BTreeSet<&str> = names.iter().map(|row| &*row[place]).collect();
        let number_of_names =
            |chars: usize| ids.iter().map(|id| beginning(id, chars)).collect::<BTreeSet<String>>().len();
        let chars = (ID_CHARS_MIN..RunId::LEN).find(|chars| number_of_names(*chars) == ids.len());
        for row in names.iter_mut() {
            row[place] = beginning(&row[place], chars.unwrap_or(RunId::LEN));
        }
    }
}

/// Returns the title of a row's session, cut to the room that a terminal has for it.
fn title_of(row: &UsageRow, room: Option<usize>) -> String {
    let title = visible(row.title.as_deref().unwrap_or_default(), Lines::Escape);
    match room {
        Some(room) if room < NAME_COLUMNS_MIN => String::new(),
        Some(room) if columns_of(&title) > room => cut(&title, room - 1),
        Some(_) | None => title.into_owned(),
    }
}

/// Cuts out the middle of a name: models and paths differ at both ends.
fn without_middle(name: &str, width: usize) -> String {
    if columns_of(name) <= width {
        return name.to_owned();
    }
    let half = |letters: &mut dyn Iterator<Item = char>, room: usize| {
        let mut text = String::new();
        for letter in letters {
            let longer = format!("{text}{letter}");
            if columns_of(&longer) > room {
                break;
            }
            text = longer;
        }
        text
    };
    let end = half(&mut name.chars().rev(), width / 2);
    let start = half(&mut name.chars(), width - 1 - columns_of(&end));
    format!("{start}…{}", end.chars().rev().collect::<String>())
}

/// Returns what the bar of a row stands for: its cost.
fn weight(row: &UsageRow) -> u128 {
    row.cost.dollars.units()
}

/// Draws a bar.
fn bar_of(weight: u128, largest: u128, columns: usize) -> String {
    if largest == 0 || columns == 0 {
        return String::new();
    }
    let eighths = weight.saturating_mul(columns as u128 * 8) / largest;
    let eighths = usize::try_from(eighths).unwrap_or(0).max(usize::from(weight > 0));
    let mut bar = PARTS[7].to_string().repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1) {
        bar.push(PARTS[part]);
    }
    bar
}

/// Says what the marks of a table mean.
fn notes(table: &UsageTable, style: &TableStyle<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if table.total.used.is_lower_bound {
        notes.push("≥ lower bound: the record does not have the final counts of every response".to_owned());
    }
    let unpriced: Vec<String> = table
        .total
        .cost
        .unpriced
        .iter()
        .map(|model| match &**model {
            "" => "responses without a model".to_owned(),
            model => format!("`{}`", visible(model, Lines::Escape)),
        })
        .collect();
    if !unpriced.is_empty() {
        notes.push(format!("no price: {}; docs/cost.md says how to set one", unpriced.join(", ")));
    }
    if table.total.agent_cost.is_some() {
        notes.push(
            "agent's: the cost that the agent reports; it may include requests that are not in its files"
                .to_owned(),
        );
    }
    notes.extend(outside_windows(table));
    let own = if style.prices.has_overrides() { ", and at your own prices" } else { "" };
    notes.push(format!("cost at list prices of {}{own}", Prices::date()));
    notes
}

/// Says what windows leave out.
pub fn outside_windows(table: &UsageTable) -> Option<String> {
    let others = &table.outside_windows;
    let responses = others.used.responses;
    let words = || {
        let responses = count(responses, "response");
        format!("windows are Claude Code's; other agents are left out: {responses}, {}", others.cost.text())
    };
    (responses > 0).then(words)
}

#[cfg(test)]
mod tests {
    use steno_library::AgentCost;
    use steno_session::usage::{ModelUsage, TokenUsage, Tokens};
    use steno_views::cost::Cost;

    use super::*;

    #[test]
    fn bar_has_a_part_for_every_eighth() {
        assert_eq!(bar_of(16, 16, 2), "██");
        assert_eq!(bar_of(9, 16, 2), "█▏");
        assert_eq!(bar_of(1, 1_000_000, 2), "▏");
        assert_eq!((bar_of(0, 9, 2), bar_of(9, 0, 2), bar_of(9, 9, 0)), Default::default());
    }

    fn table(by: UsageColumn, names: [&str; 2], tokens: u64) -> UsageTable {
        let used = |is_lower_bound| {
            let tokens =
                Tokens { input: tokens, output: tokens / 7, cache_read: tokens * 30, ..Tokens::default() };
            TokenUsage { responses: 12_345, tokens, is_lower_bound }
        };
        let cost = |is_lower_bound| {
            let model = "claude-opus-5-5".to_owned();
            let tokens = used(false).tokens;
            let used = ModelUsage { model, tokens, is_lower_bound, ..ModelUsage::default() };
            Cost::of(&Prices::default(), [&used])
        };
        let row = |name: &str, is_lower_bound| UsageRow {
            group: vec![(UsageColumn::Day, "2026-11-16".to_owned()), (by, name.to_owned())],
            title: None,
            sessions: 1,
            used: used(is_lower_bound),
            cost: cost(is_lower_bound),
            agent_cost: is_lower_bound.then(AgentCost::default),
        };
        let total = UsageRow { group: Vec::new(), ..row("", true) };
        let rows = vec![row(names[0], false), row(names[1], true)];
        UsageTable { rows, total, ..UsageTable::default() }
    }

    #[test]
    fn note_says_what_windows_leave_out() {
        let mut table = table(UsageColumn::Window, ["2026-11-15 23:00", "2026-11-16 13:00"], 10);
        assert_eq!(outside_windows(&table), None);
        table.outside_windows.used = TokenUsage { responses: 12_345, ..TokenUsage::default() };
        assert_eq!(
            outside_windows(&table).as_deref(),
            Some("windows are Claude Code's; other agents are left out: 12,345 responses, $0.00")
        );
    }

    #[track_caller]
    fn check(table: &UsageTable, width: usize, want: &[&str]) {
        let marks = IdMarks::none();
        let style = TableStyle {
            marks: &marks,
            ids: None,
            width: Some(width),
            home: Some("/home/me"),
            prices: &Prices::default(),
        };
        let plain = |line: String| anstream::adapter::strip_str(&line).to_string();
        let lines: Vec<String> = lines(table, &style).into_iter().take(4).map(plain).collect();
        assert_eq!(lines, want);
        assert!(lines.iter().all(|line| columns_of(line) <= width));
    }

    #[test]
    fn table_fits_into_eighty_columns() {
        let models = ["gemini-3.1-pro-preview-customtools", "claude-opus-5-5"];
        check(
            &table(UsageColumn::Model, models, 1_234_567),
            80,
            &[
                "day         model                                tokens      cost  agent's",
                "2026-11-16  gemini-3.1-pro-preview-customtools    38.4M    $15.87        -",
                "2026-11-16  claude-opus-5-5                     ≥ 38.4M  ≥ $15.87    $0.00",
                "total                                           ≥ 38.4M  ≥ $15.87    $0.00",
            ],
        );
        check(
            &table(UsageColumn::Model, models, 1_234_567),
            60,
            &[
                "day         model                  tokens      cost  agent's",
                "2026-11-16  gemini-3.…ustomtools    38.4M    $15.87        -",
                "2026-11-16  claude-opus-5-5       ≥ 38.4M  ≥ $15.87    $0.00",
                "total                             ≥ 38.4M  ≥ $15.87    $0.00",
            ],
        );
        check(
            &table(UsageColumn::Project, ["/home/me/shop", "/srv"], 1_200),
            80,
            &[
                "day         project   tokens     cost  agent's",
                "2026-11-16  ~/shop     37.4k    $0.02        -  ████████████████████████████████",
                "2026-11-16  /srv     ≥ 37.3k  ≥ $0.01    $0.00  ████████████████████████████████",
                "total                ≥ 37.3k  ≥ $0.01    $0.00",
            ],
        );
    }

    #[test]
    fn sessions_have_their_titles_instead_of_bars() {
        let ids = ["2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee", "9a1b2c3d-0000-4000-8000-000000000001"];
        let mut table = table(UsageColumn::Session, ids, 1_200);
        table.rows[0].title = Some("Prices must be whole numbers of cents".to_owned());
        check(
            &table,
            80,
            &[
                "day         session    tokens     cost  agent's",
                "2026-11-16  2f6b7a10    37.4k    $0.02        -  Prices must be whole numbers o…",
                "2026-11-16  9a1b2c3d  ≥ 37.3k  ≥ $0.01    $0.00",
                "total                 ≥ 37.3k  ≥ $0.01    $0.00",
            ],
        );
    }

    #[test]
    fn ids_of_sessions_stay_unique() {
        let id = |end: &str| format!("01a1de16-70f1-7b22-83bd-{end:0>12}");
        let check = |ids: &[&str], want: &[&str]| {
            let mut names: Vec<Vec<String>> = ids.iter().map(|id| vec![(*id).to_owned()]).collect();
            let (by, mut widths) = ([UsageColumn::Session], vec![RunId::LEN]);
            shorten(&mut names, &mut widths, &by, 10);
            assert_eq!(names.concat(), want, "{ids:?}");
        };
        check(&[&id("1"), "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee"], &["01a1de16", "2f6b7a10"]);
        check(&[&id("1"), &id("1")], &["01a1de16"; 2]);
        let ends = ["a00", "b00"].map(id);
        check(&[&ends[0], &ends[1]], &[&ends[0][..34], &ends[1][..34]]);
        let parts = ["01a1de16-70f1-7b", "01a1de16-70f1-7c"];
        check(&[parts[0], parts[1], &id("1")], &[parts[0], parts[1], "01a1de16"]);
    }

    #[test]
    fn name_keeps_both_ends() {
        assert_eq!(without_middle("claude-opus-4-5", 15), "claude-opus-4-5");
        assert_eq!(without_middle("claude-opus-4-5-20251101", 12), "claud…251101");
        assert_eq!(columns_of(&without_middle("漢字漢字漢字漢字", 12)), 11);
    }
}
