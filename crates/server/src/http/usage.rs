//! What sessions cost, from the runs of the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use steno_journal::Reader;
use steno_views::usage::{RowKey, UsageBuilder, Used};
use utoipa::IntoParams;

use super::events::json_response;
use super::extract::InQuery;
use super::{Api, Problem};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageQuery {
    /// What a row adds up, with commas between: `day`, `provider`, `model`, `session`
    #[param(nullable = false, pattern = "^(day|provider|model|session)(,(day|provider|model|session))*$")]
    by: Option<String>,
}

/// Add up what sessions cost in tokens
#[utoipa::path(get, path = "/v1/usage", params(UsageQuery), responses(
    (status = 200, description = "`rows`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn usage(
    State(api): State<Arc<Api>>,
    InQuery(query): InQuery<UsageQuery>,
) -> Result<Response, Problem> {
    let by: Vec<String> = query.by.as_deref().unwrap_or("day,model").split(',').map(str::to_owned).collect();
    if !by.iter().all(|name| ["day", "provider", "model", "session"].contains(&name.as_str())) {
        return Err(Problem::bad_request(
            "`by` has `day`, `provider`, `model` and `session`, with commas between",
        ));
    }
    Ok(json_response(api.work(move |api| rows(api, &by)).await?))
}

fn rows(api: &Api, by: &[String]) -> Result<String, Problem> {
    let mut builder = UsageBuilder::new();
    for run in api.store.runs()? {
        let mut reader = Reader::open(&api.store, run)?.until_now()?;
        loop {
            match reader.read_next() {
                Ok(Some(recorded)) => builder.push(&recorded.event),
                Ok(None) => break,
                Err(steno_journal::Error::Damaged { .. }) => {
                    builder.mark_incomplete(run);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut groups: BTreeMap<Vec<String>, Used> = BTreeMap::new();
    for (key, used) in builder.finish() {
        groups.entry(by.iter().map(|name| part(&key, name)).collect()).or_default().add(used);
    }
    let rows = groups.iter().map(|(key, used)| row(by, key, used)).collect::<Vec<_>>();
    Ok(format!("{{\"rows\":[{}]}}", rows.join(",")))
}

fn part(key: &RowKey, name: &str) -> String {
    match name {
        "day" => key.day.clone(),
        "provider" => key.provider.clone(),
        "model" => key.model.clone(),
        _ => key.session.to_string(),
    }
}

fn row(by: &[String], key: &[String], used: &Used) -> String {
    let mut row = serde_json::Map::new();
    for (name, value) in by.iter().zip(key) {
        row.insert(name.clone(), value.clone().into());
    }
    let tokens = used.tokens;
    for (name, count) in [
        ("responses", used.responses),
        ("input_tokens", tokens.input),
        ("output_tokens", tokens.output),
        ("cache_read_tokens", tokens.cache_read),
        ("cache_write_tokens", tokens.cache_write),
        ("reasoning_tokens", tokens.reasoning),
    ] {
        row.insert(name.to_owned(), count.into());
    }
    row.insert("exact".to_owned(), (!used.is_lower_bound).into());
    serde_json::Value::from(row).to_string()
}
