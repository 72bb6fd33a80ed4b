//! `steno ls`: lists the runs of the store, after a quick look at each.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use steno_journal::{Ends, Error as JournalError, Seal, Store, run_ends};
use steno_model::json::{Fields, JsonString, ObjectWriter};
use steno_model::{RunId, Seq};
use steno_vault::{SourceId, Vault};
use steno_views::summary::{RunSummary, SummaryBuilder, state_name};
use steno_views::{Lines, count, cut, visible, with_causes};

use crate::archiving::follow::tell;
use crate::archiving::sessions::{source_of, without_events};
use crate::archiving::warn;
use crate::args::LsArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size, state_word};
use crate::runs;
use crate::settings::Settings;

/// How wide the column of states is.
const STATE_CHARS: usize = "completed".len();

/// How wide the columns before the name are, and how much of a name is shown at least.
const BEFORE_NAME_CHARS: usize = 99;
const NAME_CHARS_MIN: usize = 20;

struct Row {
    run: RunId,
    state: &'static str,
    bytes: u64,
    summary: Option<RunSummary>,
    /// The source that it was made from.
    source: Option<SourceId>,
}

pub fn run(args: &LsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let mut rows =
        store.runs()?.into_iter().map(|run| row(&store, run)).collect::<Result<Vec<_>, Failure>>()?;
    // Newest first; times are only a help for eyes here, never an order of events.
    rows.sort_by_cached_key(|row| std::cmp::Reverse(row.started()));
    for row in &rows {
        if args.json {
            output.json_line(&row.json()?);
        } else {
            output.line(&row.human(output.width()));
        }
    }
    output.flush();
    tell_of_the_rest(&store, &rows);
    if rows.is_empty() {
        return Err(Failure::nothing(format!(
            "the store `{}` has no runs yet",
            settings.store.value.display()
        ))
        .with_hint("`steno up` archives what agents did, `steno record` takes events"));
    }
    Ok(Exit::Done)
}

/// Says what the archive has that is no run. What cannot be found out about it takes nothing from the list.
fn tell_of_the_rest(store: &Store, rows: &[Row]) {
    let of_runs = rows.iter().filter_map(|row| row.source).collect();
    let counts = match without_events(&Vault::open(Arc::clone(store.disk())), &of_runs) {
        Ok(counts) => counts,
        Err(failure) => return warn(&failure.message),
    };
    let total: u64 = counts.values().sum();
    if total == 0 {
        return;
    }
    let by: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    tell(&format!(
        "{} ({}) kept as files, without events: `steno du --by session --all` lists all sessions, \
         `steno restore SESSION --list` shows the files of one, and without `--list` gives them back",
        count(total, "session"),
        by.join(", ")
    ));
}

fn row(store: &Store, run: RunId) -> Result<Row, Failure> {
    let held = store.is_held(run)?;
    let ends = match look(store, run) {
        Ok((seals, ends)) => flaw(run, &seals, &ends).map_or(Ok(ends), Err),
        Err(
            error @ (JournalError::Damaged { .. }
            | JournalError::SealBroken { .. }
            | JournalError::NotRegular { .. }),
        ) => Err(with_causes(&error)),
        Err(error) => return Err(error.into()),
    };
    let ends = match ends {
        Ok(ends) => ends,
        Err(why) => {
            let warning = format!("run {run} is damaged: {why}");
            tracing::warn!("{}; `steno verify {run}` checks all of it", visible(&warning, Lines::Escape));
            return Ok(Row {
                run,
                state: "damaged",
                bytes: store.size(run)?.unwrap_or(0),
                summary: None,
                source: None,
            });
        }
    };
    let summary = ends.events.as_ref().map(|(first, last)| RunSummary::from_ends(first, last));
    let state = state_name(summary.as_ref(), held);
    let source = ends.events.as_ref().and_then(|(first, _)| source_of(first));
    Ok(Row { run, state, bytes: ends.bytes, summary, source })
}

/// Reads what a quick look needs: the seals, none of which reaches beyond the file, and both ends of the file.
fn look(store: &Store, run: RunId) -> Result<(Vec<Seal>, Ends), JournalError> {
    let seals = runs::fitting_seals(store, run)?;
    Ok((seals, run_ends(store, run)?))
}

/// Says what is wrong with a run as far as its ends and its seals show it.
fn flaw(run: RunId, seals: &[Seal], ends: &Ends) -> Option<String> {
    let (first, last) = ends.events.as_ref()?;
    if let Some(stranger) = [first, last].into_iter().find(|event| event.run_id != run) {
        return Some(format!("it has an event of run {}", stranger.run_id));
    }
    if first.seq != Seq::FIRST {
        return Some(format!("its first event has the number {}", first.seq));
    }
    let seal = seals.iter().find(|seal| seal.bytes == ends.bytes)?;
    let fits = seal.seq_last == last.seq.get();
    (!fits).then(|| format!("its last event is {}, and its seal names {}", last.seq, seal.seq_last))
}

impl Row {
    fn started(&self) -> Option<jiff::Timestamp> {
        self.summary.as_ref()?.started_at.as_ref()?.instant()
    }

    /// Returns the summary as JSON, with the state as the store knows it.
    fn json(&self) -> Result<String, Failure> {
        let summary = self.summary.clone().unwrap_or_else(|| SummaryBuilder::new(self.run).finish());
        let text = serde_json::to_string(&summary).map_err(|error| Failure::could_not(error.to_string()))?;
        let mut fields = Fields::parse(&text)?;
        fields.take("state")?;
        let mut object = fields.into_extra();
        object.push("state", JsonString::from(self.state).to_json());
        object.push("bytes", self.bytes.into());
        let mut out = String::new();
        ObjectWriter::begin(&mut out).finish(&object);
        Ok(out)
    }

    fn human(&self, width: Option<usize>) -> String {
        let dim = Style::new().dimmed();
        let style = match self.state {
            "recording" => AnsiColor::Cyan.on_default().bold(),
            "completed" => AnsiColor::Green.on_default(),
            "failed" | "damaged" => AnsiColor::Red.on_default().bold(),
            _ => Style::new(),
        };
        // Padded outside of the style, so that a line without more ends with its last word.
        let padding = " ".repeat(STATE_CHARS.saturating_sub(self.state.len()));
        let mut line = format!("{}  {style}{}{style:#}{padding}", self.run, state_word(self.state));
        if let Some(summary) = &self.summary {
            let started = summary.started_at.as_ref().map(ToString::to_string).unwrap_or_default();
            line.push_str(&format!(
                "  {dim}{}{dim:#}  {:>12}  {:>8}",
                visible(&started, Lines::Escape),
                count(summary.events, "event"),
                size(self.bytes),
            ));
            let name = summary.name.as_ref().map(ToString::to_string).unwrap_or_default();
            // One for the mark that it goes on.
            let name_chars = width.map_or(usize::MAX, |width| width.saturating_sub(BEFORE_NAME_CHARS + 1));
            let name = cut(&name, name_chars.max(NAME_CHARS_MIN));
            line.push_str("  ");
            line.push_str(&visible(&name, Lines::Escape));
            if let Some(parent) = summary.parent_run_id {
                line.push_str(&format!("  {dim}child of {parent}{dim:#}"));
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use steno_model::Timestamp;

    use super::*;

    #[track_caller]
    fn check(name_chars: usize, width: Option<usize>, want_chars: usize) {
        let run = RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap();
        let summary = RunSummary {
            name: Some("ä".repeat(name_chars).as_str().into()),
            started_at: Timestamp::parse("2026-06-08T08:14:42.123Z").ok(),
            ..SummaryBuilder::new(run).finish()
        };
        let row = Row { run, state: "open", bytes: 0, summary: Some(summary), source: None }.human(width);
        let dim = Style::new().dimmed();
        let plain = row.replace(&dim.render().to_string(), "").replace(&dim.render_reset().to_string(), "");
        assert_eq!(plain.chars().count(), want_chars, "{plain}");
    }

    #[test]
    fn a_long_name_is_cut_so_that_its_line_fits() {
        check(200, None, BEFORE_NAME_CHARS + 200);
        check(30, Some(130), BEFORE_NAME_CHARS + 30);
        check(200, Some(130), 130);
        check(200, Some(80), BEFORE_NAME_CHARS + NAME_CHARS_MIN + 1);
    }
}
