//! Rows of usage made by hand.

use jiff::tz::{Offset, TimeZone};
use serde_json::Value;
use steno_model::RunId;
use steno_session::usage::{CountedUsage, Dollars, ModelUsage, TokenUsage, Tokens, UsageRecord, UsedSession};
use steno_views::cost::Prices;

use super::*;

fn session(number: u8) -> RunId {
    RunId::parse(&format!("550e8400-e29b-41d4-a716-4466554400{number:02}")).unwrap()
}

/// A response with output of a million tokens at 20 dollars, or of a model without a price.
fn response(at: &str, number: u8, model: &str) -> UsageRecord {
    let tokens = Tokens { output: 1_000_000, ..Tokens::default() };
    let at: jiff::Timestamp = at.parse().unwrap();
    UsageRecord {
        at_ms: Some(at.as_millisecond()),
        provider: if number < 5 { "claude" } else { "codex" }.to_owned(),
        session: session(number),
        used: TokenUsage { responses: 1, tokens, is_lower_bound: false },
        model: ModelUsage { model: model.to_owned(), tokens, ..ModelUsage::default() },
        agent_cost: None,
    }
}

fn query(by: &str) -> UsageQuery {
    UsageQuery {
        by: by.split(',').map(|name| UsageColumn::parse(name).unwrap()).collect(),
        only: UsageFilter::default(),
        since_ms: None,
        until_ms: None,
        zone: TimeZone::fixed(Offset::constant(2)),
    }
}

/// Two days, two sessions of Claude and one of Codex; the agent's figures of the first.
fn counted() -> CountedUsage {
    let opus = "claude-opus-5-5";
    let mut unfinished = response("2026-11-16T12:00:00Z", 2, opus);
    unfinished.used.is_lower_bound = true;
    unfinished.model.is_lower_bound = true;
    let records = vec![
        response("2026-11-15T21:30:00Z", 1, opus),
        response("2026-11-15T22:30:00Z", 1, opus),
        response("2026-11-16T11:00:00Z", 1, "claude-haiku-5-5"),
        unfinished,
        response("2026-11-16T13:00:00Z", 5, "house-model"),
    ];
    let costs = [(opus, "39.5"), ("claude-haiku-5-5", "0.25"), ("hidden", "0.125")];
    let agent_costs = costs.map(|(model, cost)| (model.to_owned(), Dollars::parse(cost).unwrap()));
    let first = UsedSession {
        directory: Some("/nowhere/shop".to_owned()),
        branch: Some("main".to_owned()),
        agent_costs: agent_costs.into(),
    };
    let others = [2, 5].map(|number| (session(number), UsedSession::default()));
    CountedUsage { records, sessions: others.into_iter().chain([(session(1), first)]).collect() }
}

fn rows(query: &UsageQuery) -> Vec<String> {
    let table = UsageTable::of(&counted(), query, &Prices::default());
    let row = |row: &UsageRow| {
        let names: Vec<&str> = row.group.iter().map(|(_, value)| &**value).collect();
        let agent = row.agent_cost.map_or("-".to_owned(), |cost| {
            format!("{}{}", if cost.is_partial { "≥ " } else { "" }, cost.dollars.decimal())
        });
        format!("{}: {} {agent}", names.join(","), row.cost.text())
    };
    table.rows.iter().chain([&table.total]).map(row).collect()
}

#[track_caller]
fn check(by: &str, want: &[&str]) {
    assert_eq!(rows(&query(by)), want, "{by}");
}

#[test]
fn rows_have_cost_and_the_agents_figure() {
    let total = ": ≥ $60.50 ≥ 39.875";
    check("agent", &["claude: ≥ $60.50 ≥ 39.875", "codex: ? -", total]);
    check(
        "model",
        &["claude-opus-5-5: ≥ $60.00 ≥ 39.5", "claude-haiku-5-5: $0.50 0.25", "house-model: ? -", total],
    );
    check("project,branch", &["/nowhere/shop,main: $40.50 39.875", ",: ≥ $20.00 -", total]);
}

#[test]
fn times_are_local() {
    let total = ": ≥ $60.50 ≥ 39.875";
    check("day", &["2026-11-15: $20.00 -", "2026-11-16: ≥ $40.50 ≥ 0.25", total]);
    check("week", &["2026-W46: $20.00 -", "2026-W47: ≥ $40.50 ≥ 0.25", total]);
    check("month,month", &["2026-11: ≥ $60.50 ≥ 39.875", total]);
    let utc = UsageQuery { zone: TimeZone::UTC, ..query("day") };
    assert_eq!(rows(&utc)[0], "2026-11-15: $40.00 39.5");
}

#[test]
fn windows_are_claudes() {
    check(
        "window",
        &["2026-11-15 23:00: $40.00 39.5", "2026-11-16 13:00: ≥ $20.50 ≥ 0.25", ": ≥ $60.50 ≥ 39.875"],
    );
}

#[test]
fn windows_say_what_they_leave_out() {
    let left_out = |query: &UsageQuery| {
        let row = UsageTable::of(&counted(), query, &Prices::default()).outside_windows;
        (row.used.responses, row.sessions, row.cost.text())
    };
    let of_agent = |agent: &str| UsageQuery {
        only: UsageFilter { agent: Some(agent.to_owned()), ..UsageFilter::default() },
        ..query("window")
    };
    assert_eq!(left_out(&query("day")), (0, 0, "$0.00".to_owned()));
    assert_eq!(left_out(&query("window,model")), (1, 1, "?".to_owned()));
    assert_eq!(left_out(&of_agent("claude")), (0, 0, "$0.00".to_owned()));
    assert_eq!(left_out(&of_agent("codex")), (1, 1, "?".to_owned()));
}

#[test]
fn times_limit_what_counts() {
    let ms = |text: &str| Some(text.parse::<jiff::Timestamp>().unwrap().as_millisecond());
    let (since_ms, until_ms) = (ms("2026-11-15T22:30:00Z"), ms("2026-11-16T12:00:00Z"));
    let limited = UsageQuery { since_ms, until_ms, ..query("model") };
    assert_eq!(
        rows(&limited),
        ["claude-opus-5-5: $20.00 -", "claude-haiku-5-5: $0.50 0.25", ": $20.50 ≥ 0.25"]
    );
}

#[test]
fn filters_limit_what_counts() {
    let check = |only: UsageFilter, want: &[&str]| {
        assert!(!only.is_empty());
        let filtered = UsageQuery { only, ..query("model") };
        assert_eq!(rows(&filtered), want, "{:?}", filtered.only);
    };
    let named = |name: &str| Some(name.to_owned());
    let first = ["claude-opus-5-5: $40.00 39.5", "claude-haiku-5-5: $0.50 0.25", ": $40.50 39.875"];
    check(UsageFilter { project: named("SHOP"), ..UsageFilter::default() }, &first);
    check(UsageFilter { branch: named("main"), ..UsageFilter::default() }, &first);
    check(UsageFilter { branch: named("mai"), ..UsageFilter::default() }, &[": $0.00 -"]);
    check(UsageFilter { agent: named("Codex"), ..UsageFilter::default() }, &["house-model: ? -", ": ? -"]);
    let haiku = ["claude-haiku-5-5: $0.50 0.25", ": $0.50 0.25"];
    check(UsageFilter { model: named("haiku"), ..UsageFilter::default() }, &haiku);
    check(
        UsageFilter { model: named("haiku"), agent: named("codex"), ..UsageFilter::default() },
        &[": $0.00 -"],
    );
}

#[test]
fn each_column_is_ordered_by_its_own_cost() {
    // The model that costs most is first, and below each model its days are in order.
    check(
        "model,day",
        &[
            "claude-opus-5-5,2026-11-15: $20.00 -",
            "claude-opus-5-5,2026-11-16: ≥ $40.00 -",
            "claude-haiku-5-5,2026-11-16: $0.50 0.25",
            "house-model,2026-11-16: ? -",
            ": ≥ $60.50 ≥ 39.875",
        ],
    );
    // The days are in order, and below each day its models are compared.
    check(
        "day,model",
        &[
            "2026-11-15,claude-opus-5-5: $20.00 -",
            "2026-11-16,claude-opus-5-5: ≥ $40.00 -",
            "2026-11-16,claude-haiku-5-5: $0.50 0.25",
            "2026-11-16,house-model: ? -",
            ": ≥ $60.50 ≥ 39.875",
        ],
    );
}

#[test]
fn json_has_null_for_what_no_record_says() {
    let mut counted = counted();
    for record in &mut counted.records {
        record.model.model.clear();
    }
    let table = UsageTable::of(&counted, &query("model,project"), &Prices::default());
    let rows: Vec<Value> =
        table.rows.iter().map(|row| serde_json::from_str(row.json().as_str()).unwrap()).collect();
    assert!(rows.iter().all(|row| row["model"].is_null()), "{rows:?}");
    assert!(rows.iter().any(|row| row["project"].is_null()), "{rows:?}");
    assert_eq!(rows[0]["unpriced_models"], serde_json::json!([null]));
}

#[test]
fn json_has_everything() {
    let table = UsageTable::of(&counted(), &query("agent"), &Prices::default());
    let rows: Vec<Value> =
        table.rows.iter().map(|row| serde_json::from_str(row.json().as_str()).unwrap()).collect();
    assert_eq!(rows[0]["agent"], "claude");
    assert_eq!((&rows[0]["cost_usd"], &rows[0]["cost_exact"]), (&serde_json::json!(60.5), &false.into()));
    assert_eq!(
        (&rows[0]["agent_cost_usd"], &rows[0]["agent_cost_whole"]),
        (&serde_json::json!(39.875), &false.into())
    );
    assert_eq!(
        (&rows[1]["cost_usd"], &rows[1]["unpriced_models"]),
        (&Value::Null, &serde_json::json!(["house-model"]))
    );
    assert_eq!(
        (&rows[1]["exact"], &rows[0]["exact"], &rows[0]["sessions"]),
        (&true.into(), &false.into(), &2.into())
    );
}
