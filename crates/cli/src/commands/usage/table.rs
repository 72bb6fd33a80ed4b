//! Rows of usage as a table for people.

use std::collections::BTreeMap;

use anstyle::Style;
use steno_session::usage::{Column, TokenUsage, UsageGroup};
use steno_views::{Lines, columns_of, padding, visible};

use crate::id_lines::IdMarks;
use crate::output::Output;

/// Prints rows and their total.
pub fn print_table(
    groups: &BTreeMap<UsageGroup, TokenUsage>,
    by: &[Column],
    marks: &IdMarks,
    output: &mut Output,
) {
    let mut total = TokenUsage::default();
    for used in groups.values() {
        total.add(*used);
    }
    let mut table: Vec<Vec<String>> = groups
        .iter()
        .map(|(group, used)| {
            cells(group.iter().map(|(_, value)| visible(value, Lines::Escape).into_owned()).collect(), used)
        })
        .collect();
    let mut first = vec![String::new(); by.len()];
    if let Some(cell) = first.first_mut() {
        "total".clone_into(cell);
    }
    table.push(cells(first, &total));
    let names = ["responses", "input", "output", "cache read", "cache write", "total"];
    let header: Vec<String> =
        by.iter().map(|column| column.name().to_owned()).chain(names.map(str::to_owned)).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| table.iter().chain([&header]).map(|row| columns_of(&row[column])).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column >= by.len() {
                return format!("{}{cell}", padding(cell, *width));
            }
            let padding = padding(cell, *width);
            let is_session = by[column] == Column::Session;
            let cell = if is_session { marks.mark(cell) } else { cell.clone() };
            format!("{cell}{padding}")
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let bold = Style::new().bold();
    output.line(&format!("{bold}{}{bold:#}", line(&header)));
    for row in &table {
        output.line(&line(row));
    }
    if total.is_lower_bound {
        output.line("≥ lower bound: the record does not have the final counts of every response");
    }
}

fn cells(mut group: Vec<String>, used: &TokenUsage) -> Vec<String> {
    let mark = if used.is_lower_bound { "≥ " } else { "" };
    let tokens = used.tokens;
    group.push(thousands(used.responses));
    for number in [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, tokens.total()] {
        group.push(format!("{mark}{}", thousands(number)));
    }
    group
}

/// Writes a number with commas between its thousands.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), want);
        }
    }
}
