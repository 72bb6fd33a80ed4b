//! The windows in which Claude's limits count: five hours each, from the hour of the first response.

use steno_session::usage::UsageRecord;

/// The length of a window.
pub const WINDOW_MS: i64 = 5 * HOUR_MS;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// The starts of the windows, in order.
pub(super) struct Windows(Vec<i64>);

impl Windows {
    /// Finds the windows of Claude's responses.
    pub(super) fn of(records: &[UsageRecord]) -> Self {
        let mut times: Vec<i64> = records.iter().filter_map(time).collect();
        times.sort_unstable();
        let mut starts = Vec::<i64>::new();
        for time in times {
            if starts.last().is_none_or(|start| time >= start + WINDOW_MS) {
                starts.push(time - time.rem_euclid(HOUR_MS));
            }
        }
        Self(starts)
    }

    /// Returns the start of the window of a record; `None` for other agents.
    pub(super) fn start_of(&self, record: &UsageRecord) -> Option<i64> {
        let time = time(record)?;
        let after = self.0.partition_point(|start| *start <= time);
        self.0.get(after.checked_sub(1)?).copied()
    }
}

/// Returns the start of the window of Claude that is open at a time.
#[must_use]
pub fn window_at(records: &[UsageRecord], at_ms: i64) -> Option<i64> {
    let starts = Windows::of(records).0;
    starts.into_iter().rev().find(|start| (*start..start + WINDOW_MS).contains(&at_ms))
}

fn time(record: &UsageRecord) -> Option<i64> {
    record.at_ms.filter(|_| record.provider == "claude")
}

#[cfg(test)]
mod tests {
    use steno_model::RunId;
    use steno_session::usage::{ModelUsage, TokenUsage};

    use super::*;

    fn record(provider: &str, minutes: i64) -> UsageRecord {
        UsageRecord {
            at_ms: Some(minutes * 60_000),
            provider: provider.to_owned(),
            session: RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            used: TokenUsage::default(),
            model: ModelUsage::default(),
            agent_cost: None,
        }
    }

    #[test]
    fn window_begins_with_the_hour_of_its_first_response() {
        let minutes = [610, 90, 359, 360, 1000, 659];
        let records: Vec<_> = minutes.map(|minutes| record("claude", minutes)).into_iter().collect();
        let windows = Windows::of(&records);
        let hours = |minutes: i64| windows.start_of(&record("claude", minutes)).map(|start| start / HOUR_MS);
        // From 1:00 to 6:00, from 6:00 to 11:00, and from 16:00 on.
        assert_eq!(minutes.map(hours), [Some(6), Some(1), Some(1), Some(6), Some(16), Some(6)]);
        let open = |minutes: i64| window_at(&records, minutes * 60_000).map(|start| start / HOUR_MS);
        assert_eq!([350, 700, 1200].map(open), [Some(1), None, Some(16)]);
        assert_eq!(windows.start_of(&record("codex", 90)), None);
        assert_eq!(windows.start_of(&record("claude", 5)), None);
    }
}
