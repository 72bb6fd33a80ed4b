//! The layout of the table of usage: which columns it has, and how numbers are written, so that it fits.

use steno_library::{UsageRow, UsageTable};
use steno_session::usage::TokenUsage;
use steno_views::{Rounding, columns_of, short_number, thousands};

/// The least and the largest width of a bar.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 8..=32;
/// The columns between two cells.
const GAP: usize = 2;
/// The names of the columns of a whole table.
const NAMES: [&str; 8] =
    ["responses", "input", "output", "cache read", "cache write", "total", "cost", "agent's"];

/// A way to write the numbers of a table. Numbers are shortened or left out, and never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All counts, with all digits.
    Whole,
    /// All counts in a short form, like `1.23M`.
    Short,
    /// The sum of tokens in a short form.
    Sum,
}

impl Layout {
    /// Chooses the layout of a table for a width, and the width of its bars, which are 0 if there is no room. `names_columns` are
    /// the columns that the names of a row take.
    pub fn choose(table: &UsageTable, names_columns: usize, width: Option<usize>) -> (Self, usize) {
        let Some(width) = width else { return (Self::Whole, 0) };
        let used = |layout: Self| {
            let widths = layout.widths(table);
            names_columns + widths.iter().map(|width| width + GAP).sum::<usize>()
        };
        let bar = |layout: Self| {
            let room = width.saturating_sub(used(layout) + GAP);
            if room < *BAR_COLUMNS.start() { 0 } else { room.min(*BAR_COLUMNS.end()) }
        };
        let fits = [Self::Whole, Self::Short].into_iter().find(|layout| used(*layout) <= width);
        let layout = fits.unwrap_or(Self::Sum);
        (layout, bar(layout))
    }

    /// Returns the names of its columns.
    pub fn header(self, table: &UsageTable) -> Vec<&'static str> {
        let has_agents = table.total.agent_cost.is_some();
        let names = match self {
            Self::Whole | Self::Short => NAMES.to_vec(),
            Self::Sum => vec!["tokens", "cost", "agent's"],
        };
        names.into_iter().filter(|name| has_agents || *name != "agent's").collect()
    }

    /// Returns the cells of a row.
    pub fn cells(self, row: &UsageRow, table: &UsageTable) -> Vec<String> {
        let TokenUsage { responses, tokens, is_lower_bound } = row.used;
        let mark = if is_lower_bound { "≥ " } else { "" };
        let number = |count: u64| match self {
            Self::Whole => format!("{mark}{}", thousands(count)),
            Self::Short | Self::Sum => format!("{mark}{}", short_number(count, Rounding::of(is_lower_bound))),
        };
        let mut cells = match self {
            Self::Whole | Self::Short => {
                let counts =
                    [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.total()];
                let mut cells = vec![thousands(responses)];
                cells.extend(counts.map(number));
                cells
            }
            Self::Sum => vec![number(tokens.total())],
        };
        cells.push(row.cost.text());
        if table.total.agent_cost.is_some() {
            cells.push(match row.agent_cost {
                Some(cost) if cost.is_partial => format!("≥ {}", cost.dollars.rounded_down()),
                Some(cost) => cost.dollars.to_string(),
                None => "-".to_owned(),
            });
        }
        cells
    }

    /// Returns the widths of its columns.
    pub fn widths(self, table: &UsageTable) -> Vec<usize> {
        let rows = table.rows.iter().chain([&table.total]).map(|row| self.cells(row, table));
        let mut widths: Vec<usize> = self.header(table).into_iter().map(columns_of).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(&row) {
                *width = columns_of(cell).max(*width);
            }
        }
        widths
    }
}
