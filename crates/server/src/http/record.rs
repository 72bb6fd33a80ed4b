//! Recording over HTTP: drafts in, acknowledgements out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use steno_journal::{Error as JournalError, Level};
use steno_model::{Draft, RunId};
use steno_views::cut;
use utoipa::IntoParams;

use super::app::json_response;
use super::connections::within;
use super::extract::{InPath, InQuery, RunPath};
use super::memory_budget::Reservation;
use super::work::{ANSWER_BYTES, Job, Lane, TOO_BUSY};
use super::{Api, Problem};

/// How many events one request may have.
const EVENTS_MAX: usize = 20_000;
/// How many times as much memory parsed events take as their text, at most.
const PARSED_TIMES: usize = 4;
/// Longer bodies are recorded one after the other.
const LONG_BYTES: usize = 1024 * 1024;
/// The longest error of one event.
const ERROR_CHARS_MAX: usize = 160;
/// How much memory is reserved for a body of unknown length.
const UNTOLD_BYTES: usize = 64 * 1024;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordQuery {
    /// What an acknowledgement guarantees: `written` survives a crash of the process, `synced` a power cut
    #[param(nullable = false, pattern = "^(written|synced)$")]
    level: Option<String>,
}

/// Record events
///
/// Takes one event or an array of events. If one of them is not valid, none is recorded. As `application/x-ndjson`, takes one
/// event per line, and each line succeeds or fails by itself. Events have no `seq`: the answer has one acknowledgement for each,
/// in order. A run that does not exist is created.
#[utoipa::path(post, path = "/v1/runs/{run}/events", params(RunPath, RecordQuery), request_body(content(
    (ref("#/components/schemas/Drafts") = "application/json"),
    (String = "application/x-ndjson"),
)), responses(
    (status = 200, description = "`acks`: `seq` and `level`, or `error`, of each event", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 403, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json"),
    (status = 413, body = Problem, content_type = "application/problem+json"),
    (status = 507, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn record(
    State(api): State<Arc<Api>>,
    InPath(RunPath { run }): InPath<RunPath>,
    InQuery(query): InQuery<RecordQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let level = match query.level.as_deref() {
        None => api.level,
        Some("written") => Level::Written,
        Some("synced") => Level::Synced,
        Some(_) => return Err(Problem::bad_request("`level` is `written` or `synced`")),
    };
    let patience = api.limits.patience;
    let received =
        within(patience, receive(&api, body), "the body did not arrive in time; nothing was recorded");
    let (body, room) = received.await?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_lines = kind.to_ascii_lowercase().starts_with("application/x-ndjson");
    let parsing = within(patience, api.parsing.reserve(body.len().saturating_mul(PARSED_TIMES)), TOO_BUSY);
    let parsing = parsing.await?;
    // Memory for the answer is reserved before recording, so that the answer cannot fail after it.
    let answer = within(patience, api.answers.reserve(ANSWER_BYTES), TOO_BUSY).await?;
    let lane = if body.len() > LONG_BYTES { Lane::LongRecords } else { Lane::Records };
    let work = move |api: &Job| {
        let drafts = read(&body, is_lines, run)?;
        drop((body, room));
        let acks = write(api, run, drafts, level);
        drop(parsing);
        acks
    };
    let acks = api.work(lane, work).await?;
    Ok(json_response(answer.hold(acks.into_bytes())))
}

/// Receives a body when there is memory for it.
async fn receive(api: &Api, mut body: Body) -> Result<(Vec<u8>, Reservation), Problem> {
    let bytes_max = api.limits.body_bytes;
    let too_long = || {
        let detail = format!("the limit is {bytes_max} bytes: send the events in several requests");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body", "The body is too long", detail)
    };
    let expected = body.size_hint().exact().map_or(Ok(UNTOLD_BYTES.min(bytes_max)), usize::try_from);
    let len = expected.ok().filter(|len| *len <= bytes_max).ok_or_else(too_long)?;
    let mut room = within(api.limits.patience, api.bodies.reserve(len), TOO_BUSY).await?;
    let (mut received, mut capacity) = (Vec::with_capacity(len), len);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(StatusCode::BAD_REQUEST, "body", "The body ended too soon", error.to_string())
        })?;
        let data = frame.into_data().unwrap_or_default();
        if data.len() > bytes_max - received.len() {
            return Err(too_long());
        }
        received.extend_from_slice(&data);
        if received.len() > capacity {
            capacity = received.len().saturating_mul(2).min(bytes_max);
            if !room.fit(capacity) {
                return Err(Problem::too_much(
                    "there is not enough memory for the body now: try again later",
                ));
            }
        }
    }
    Ok((received, room))
}

/// Reads drafts. In JSON all have to be valid; of lines each succeeds or fails by itself, as in `steno record`.
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
    let failed = |error: serde_json::Error| Problem::bad_request(format!("the body is not JSON: {error}"));
    let events: Vec<&RawValue> = if body.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(body).map_err(failed)?
    } else {
        vec![serde_json::from_slice(body).map_err(failed)?]
    };
    if events.len() > EVENTS_MAX {
        return Err(too_many());
    }
    let good = events.into_iter().zip(1..).map(|(event, number)| {
        let refused = |error| {
            Problem::bad_request(format!("event {number} is not valid, so none is recorded: {error}"))
        };
        draft(event.get().as_bytes()).map(Ok).map_err(refused)
    });
    good.collect()
}

/// Records drafts, and waits until all have reached the level.
fn write(api: &Api, run: RunId, drafts: Vec<Result<Draft, String>>, level: Level) -> Result<String, Problem> {
    if drafts.iter().all(Result::is_err) {
        // A run is not created if no event is valid.
        return Ok(acks(drafts.into_iter().map(|draft| draft.map(|_| 0)).collect(), level));
    }
    let _recording = api.recorders.enter()?;
    let recorder = api.recorders.of(run)?;
    let (mut has_failed, mut no_room) = (false, None);
    let pending: Vec<_> = drafts
        .into_iter()
        .map(|draft| {
            recorder.append(draft?, level).map_err(|error| {
                let text = error.to_string();
                if matches!(error, JournalError::NoRoom { .. }) {
                    no_room = Some(error);
                } else {
                    // Every error except a too long event makes the recorder unusable.
                    has_failed |= !matches!(error, JournalError::TooLong { .. });
                }
                text
            })
        })
        .collect();
    let seqs = pending.into_iter().map(|pending| {
        pending?.wait().map(steno_model::Seq::get).map_err(|error| {
            has_failed = true;
            error.to_string()
        })
    });
    let seqs: Vec<Result<u64, String>> = seqs.collect();
    if has_failed {
        api.recorders.give_up(&recorder);
    }
    match no_room {
        Some(no_room) if seqs.iter().all(Result::is_err) => Err(no_room.into()),
        _ => Ok(acks(seqs, level)),
    }
}

/// Formats acknowledgements.
fn acks(seqs: Vec<Result<u64, String>>, level: Level) -> String {
    let acks: Vec<String> = seqs.into_iter().map(|seq| ack(seq, level)).collect();
    format!("{{\"acks\":[{}]}}", acks.join(","))
}

fn ack(seq: Result<u64, String>, level: Level) -> String {
    match seq {
        Ok(seq) => format!("{{\"seq\":{seq},\"level\":\"{}\"}}", level.as_str()),
        Err(error) => {
            let error = cut(&error, ERROR_CHARS_MAX);
            format!("{{\"error\":{}}}", serde_json::Value::from(&*error))
        }
    }
}
