//! Recording over HTTP: drafts in, acknowledgements out.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use steno_journal::{Error as JournalError, Level};
use steno_model::{Draft, RunId};
use utoipa::IntoParams;

use super::drafts;
use super::events::json_response;
use super::extract::{InPath, InQuery};
use super::runs::parse;
use super::{Api, Problem};

/// How many events one request may have.
const EVENTS_MAX: usize = 20_000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordQuery {
    /// What an acknowledgement promises: `written` survives the death of the process, `synced` a power cut
    #[param(nullable = false, pattern = "^(written|synced)$")]
    level: Option<String>,
}

/// Record events
///
/// One event or an array of them, of which none is recorded if one is no event; or as `application/x-ndjson` one a line, each for itself.
/// They have no `seq`: the answer has one acknowledgement for each, in order.
#[utoipa::path(post, path = "/v1/runs/{run}/events", params(
    ("run" = String, Path, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", description = "The run's UUID; one that is not there begins"),
    RecordQuery,
), request_body(content = drafts::Drafts, content_type = "application/json"), responses(
    (status = 200, description = "`acks`: `seq` and `level`, or `error`, of each event", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 403, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 413, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn record(
    State(api): State<Arc<Api>>,
    InPath(run): InPath<String>,
    InQuery(query): InQuery<RecordQuery>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let run = parse(&run)?;
    let level = match query.level.as_deref() {
        None => api.level,
        Some("written") => Level::Written,
        Some("synced") => Level::Synced,
        Some(_) => return Err(Problem::bad_request("`level` is `written` or `synced`")),
    };
    let body = body.map_err(|error| {
        let status = error.status();
        let title = if status == StatusCode::PAYLOAD_TOO_LARGE {
            "The body is too long"
        } else {
            "The body ended too soon"
        };
        Problem::new(status, "body", title, error.body_text())
    })?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_lines = kind.to_ascii_lowercase().starts_with("application/x-ndjson");
    let work = api.work(move |api| {
        let drafts = read(&body, is_lines, run)?;
        write(api, run, drafts, level)
    });
    Ok(json_response(work.await?))
}

/// Reads drafts. Of JSON all have to be good; of lines each is told by itself, as `steno record` does.
fn read(body: &[u8], is_lines: bool, run: RunId) -> Result<Vec<Result<Draft, String>>, Problem> {
    let draft = |text: &[u8]| Draft::parse(text, run).map_err(|error| error.to_string());
    let too_many = || Problem::bad_request(format!("there are more than {EVENTS_MAX} events"));
    if is_lines {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        if lines.clone().nth(EVENTS_MAX).is_some() {
            return Err(too_many());
        }
        return Ok(lines.map(draft).collect());
    }
    let failed = |error: serde_json::Error| Problem::bad_request(format!("the body is no JSON: {error}"));
    let events: Vec<&RawValue> = if body.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(body).map_err(failed)?
    } else {
        vec![serde_json::from_slice(body).map_err(failed)?]
    };
    if events.len() > EVENTS_MAX {
        return Err(too_many());
    }
    let good = events.into_iter().zip(1..).map(|(event, number)| {
        let refused =
            |error| Problem::bad_request(format!("event {number} is refused, and so are all: {error}"));
        draft(event.get().as_bytes()).map(Ok).map_err(refused)
    });
    good.collect()
}

/// Records drafts, and waits until all are as safe as was asked for.
fn write(api: &Api, run: RunId, drafts: Vec<Result<Draft, String>>, level: Level) -> Result<String, Problem> {
    if drafts.iter().all(Result::is_err) {
        // A run does not begin with what is refused.
        let acks = drafts.into_iter().map(|draft| ack(draft.map(|_| 0), level)).collect::<Vec<_>>();
        return Ok(format!("{{\"acks\":[{}]}}", acks.join(",")));
    }
    let recorder = api.recorders.of(run)?;
    let mut has_failed = false;
    let pending: Vec<_> = drafts
        .into_iter()
        .map(|draft| {
            let appended = recorder.append(draft?, level);
            // One that is refused for its length or for want of room takes nothing from the recorder.
            has_failed |= appended.as_ref().is_err_and(|error| {
                !matches!(error, JournalError::NoRoom { .. } | JournalError::TooLong { .. })
            });
            appended.map_err(|error| error.to_string())
        })
        .collect();
    let acks = pending.into_iter().map(|pending| {
        let seq = pending.and_then(|pending| {
            pending.wait().map(steno_model::Seq::get).map_err(|error| {
                has_failed = true;
                error.to_string()
            })
        });
        ack(seq, level)
    });
    let acks = acks.collect::<Vec<_>>().join(",");
    if has_failed {
        api.recorders.give_up(&recorder);
    }
    Ok(format!("{{\"acks\":[{acks}]}}"))
}

fn ack(seq: Result<u64, String>, level: Level) -> String {
    match seq {
        Ok(seq) => format!("{{\"seq\":{seq},\"level\":\"{}\"}}", level.as_str()),
        Err(error) => format!("{{\"error\":{}}}", serde_json::Value::from(error)),
    }
}
