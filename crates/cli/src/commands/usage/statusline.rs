//! `steno usage --statusline`: one line for the status line of Claude Code.
//!
//! Claude Code runs the command after each message, gives it JSON about the session, and shows its first line. A failure would
//! blank the line, so what is not known is left out.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use jiff::Zoned;
use serde_json::Value;
use steno_library::{UsageColumn, UsageFilter, UsageQuery, UsageTable, WINDOW_MS, window_at};
use steno_session::usage::{CountedUsage, Dollars};
use steno_views::cost::Cost;
use steno_views::{Lines, visible};

use super::sources::from_changed_claude_files;
use crate::failure::Exit;
use crate::output::Output;
use crate::settings::Settings;
use crate::time_words::now;

/// How much of the JSON is read.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

pub fn run(settings: &Settings, output: &mut Output) -> Exit {
    let mut input = Vec::new();
    // What was read until a failure is used.
    let _ = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut input);
    let session: Value = serde_json::from_slice(&input).unwrap_or_default();
    let now = now();
    let costs = match from_changed_claude_files(look_back(&now)) {
        Ok(usage) => Some(RecentCosts::of(&usage.count(), &now, settings)),
        Err(failure) => {
            tracing::debug!("cannot read Claude's files: {}", failure.message);
            None
        }
    };
    output.line(&line(&session, costs.as_ref()));
    Exit::Done
}

/// Returns the time from which files are read: the beginning of the day, or of the earliest window that may be open.
fn look_back(now: &Zoned) -> SystemTime {
    let window = now.timestamp().as_millisecond() - WINDOW_MS;
    let day = day_start(now).unwrap_or(window);
    let since = u64::try_from(window.min(day)).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_millis(since)
}

fn day_start(now: &Zoned) -> Option<i64> {
    Some(now.start_of_day().ok()?.timestamp().as_millisecond())
}

/// What was used lately.
struct RecentCosts {
    today: Cost,
    /// The window that is open, and the minutes until it ends.
    window: Option<(Cost, i64)>,
}

impl RecentCosts {
    fn of(counted: &CountedUsage, now: &Zoned, settings: &Settings) -> Self {
        let cost_since = |since_ms: Option<i64>| {
            let zone = now.time_zone().clone();
            let query = UsageQuery {
                by: vec![UsageColumn::Provider],
                only: UsageFilter::default(),
                since_ms,
                until_ms: None,
                zone,
            };
            UsageTable::of(counted, &query, &settings.prices.prices).total.cost
        };
        let now_ms = now.timestamp().as_millisecond();
        let window = window_at(&counted.records, now_ms);
        let minutes_left = |start: i64| (start + WINDOW_MS - now_ms) / 60_000;
        Self {
            today: cost_since(day_start(now)),
            window: window.map(|start| (cost_since(Some(start)), minutes_left(start))),
        }
    }
}

/// Returns the line: model, the agent's own cost of the session, the cost of the day and of the window.
fn line(session: &Value, costs: Option<&RecentCosts>) -> String {
    let model = &session["model"];
    let model = model["display_name"].as_str().or_else(|| model["id"].as_str());
    let own = &session["cost"]["total_cost_usd"];
    let own = own.is_number().then(|| Dollars::parse(&own.to_string())).flatten();
    let mut parts = Vec::new();
    parts.extend(model.map(|model| visible(model, Lines::Escape).into_owned()));
    parts.extend(own.map(|own| format!("{own} session")));
    if let Some(costs) = costs {
        parts.push(format!("{} today", costs.today.text()));
        if let Some((cost, minutes)) = &costs.window {
            parts.push(format!("{} window, {}h{:02}m left", cost.text(), minutes / 60, minutes % 60));
        }
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn line_leaves_out_what_is_not_known() {
        let session =
            json!({"model": {"id": "claude-x", "display_name": "X\u{1b}"}, "cost": {"total_cost_usd": 0.5}});
        let costs = RecentCosts { today: Cost::default(), window: Some((Cost::default(), 125)) };
        assert_eq!(
            line(&session, Some(&costs)),
            "X\\u{1b} · $0.50 session · $0.00 today · $0.00 window, 2h05m left"
        );
        assert_eq!(line(&json!({"model": {"id": "claude-x"}}), None), "claude-x");
        assert_eq!(line(&Value::Null, None), "");
    }
}
