//! `steno usage`: what sessions cost in tokens, from the agents' own files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anstyle::Style;
use steno_adapters::Sink;
use steno_capture::discovery::{self, Home, Provider};
use steno_model::{Draft, EventType, RunId, Seq, Timestamp};
use steno_views::usage::{Column, Group, UsageBuilder, Used, each_once, grouped, row};
use steno_views::{Lines, count, visible};

use super::provider_events::warn_of_the_rest;
use crate::archiving::environment;
use crate::args::UsageArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::provider_files::{Files, Opened, Reading};

pub fn run(args: &UsageArgs, output: &mut Output) -> Outcome {
    let mut fold = Fold::default();
    let tally = Files::find(&paths(args)?).each(|file| read(file, &mut fold))?;
    if tally.is_enough {
        return Ok(Exit::Done);
    }
    let rows = fold.usage.finish();
    if rows.is_empty() {
        tally.check()?;
        let (files, known) = (count(tally.total, "file"), tally.known);
        let message = format!("no usage found in {files}, of which {known} are an agent's that can be read");
        return Err(Failure::nothing(message));
    }
    let by = each_once(&args.by.iter().map(|group| group.column()).collect::<Vec<_>>());
    let mut groups = grouped(&rows, &by);
    if tally.unread + tally.cut > 0 {
        // What was not read may belong to any of them.
        for used in groups.values_mut() {
            used.is_lower_bound = true;
        }
    }
    if args.json {
        for (key, used) in &groups {
            output.json_line(row(key, used).as_str());
        }
    } else {
        print_table(&groups, &by, output);
    }
    tally.check()?;
    Ok(Exit::Done)
}

fn read(file: Opened, fold: &mut Fold) -> Result<Option<Reading>, Failure> {
    if file.surface().is_none() {
        tracing::debug!("`{}` is no agent's file", file.path().display());
    }
    fold.runs.clear();
    let read = file.read(fold, |_| Output::is_abandoned())?;
    if let Some(read) = &read {
        warn_of_the_rest(read);
        if read.completeness.unreadable > 0 || read.completeness.torn_bytes > 0 {
            fold.mark_incomplete();
        }
    }
    Ok(read)
}

/// Returns the paths that were given, or the homes of the agents that have adapters.
fn paths(args: &UsageArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.paths.is_empty() {
        return Ok(args.paths.clone());
    }
    let found: Vec<_> = discovery::homes(&environment()).found.iter().flat_map(session_dirs).collect();
    if found.is_empty() {
        let failure = Failure::nothing("no agent's sessions found");
        return Err(failure.with_hint("name a file or directory: `steno usage PATH`"));
    }
    Ok(found)
}

/// Returns where an agent that has an adapter keeps its sessions.
fn session_dirs(home: &Home) -> Vec<PathBuf> {
    let dirs: &[&str] = match home.provider {
        Provider::Claude => &["projects"],
        Provider::Codex => &["sessions", "archived_sessions"],
        Provider::Gemini | Provider::Copilot => &[],
    };
    dirs.iter().map(|dir| home.root.join(dir)).filter(|dir| dir.is_dir()).collect()
}

/// Hands the events that count on to the view.
#[derive(Default)]
struct Fold {
    usage: UsageBuilder,
    /// The runs of the file that is being read.
    runs: BTreeSet<RunId>,
}

impl Fold {
    /// Takes note that the file has lost something, which may have been usage.
    fn mark_incomplete(&mut self) {
        for run in &self.runs {
            self.usage.mark_incomplete(*run);
        }
    }
}

impl Sink for Fold {
    fn draft(&mut self, run: RunId, draft: Draft) {
        if draft.event_type() == EventType::RunStarted {
            self.runs.insert(run);
        }
        let unknown = || Timestamp::from_record("".into());
        self.usage.push(&draft.into_event(run, Seq::FIRST, unknown));
    }

    fn wants(&self, event_type: EventType) -> bool {
        UsageBuilder::wants(event_type)
    }

    fn wants_whole(&self) -> bool {
        false
    }
}

fn print_table(groups: &BTreeMap<Group, Used>, by: &[Column], output: &mut Output) {
    let mut total = Used::default();
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
        .map(|column| table.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < by.len() { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let bold = Style::new().bold();
    output.line(&format!("{bold}{}{bold:#}", line(&header)));
    for row in &table {
        output.line(&line(row));
    }
    if total.is_lower_bound {
        output
            .line("≥ at least so much: what could be read does not have the final counts of every response");
    }
}

fn cells(mut group: Vec<String>, used: &Used) -> Vec<String> {
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
    fn thousands_are_set_apart() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), want);
        }
    }
}
