//! Extractors for paths and queries that fail with a [`Problem`].

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use steno_model::RunId;
use utoipa::{IntoParams, ToSchema};

use super::Problem;

/// The UUID of a run.
#[derive(ToSchema)]
#[schema(pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct RunUuid(String);

/// The path of a run.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct RunPath {
    /// The run's UUID
    #[param(value_type = RunUuid, inline)]
    #[serde(deserialize_with = "run_id")]
    pub(super) run: RunId,
}

/// The path of a session.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ThreadPath {
    /// The UUID of the session or of one of its runs
    #[param(value_type = RunUuid, inline)]
    #[serde(deserialize_with = "run_id")]
    pub(super) thread: RunId,
}

/// The path of a turn.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct TurnPath {
    /// The UUID of the session or of one of its runs
    #[param(value_type = RunUuid, inline)]
    #[serde(deserialize_with = "run_id")]
    pub(super) thread: RunId,
    /// The step name of the turn, or the provider's id of it
    #[param(min_length = 1)]
    pub(super) turn: String,
}

fn run_id<'de, D: Deserializer<'de>>(text: D) -> Result<RunId, D::Error> {
    RunId::parse(&String::deserialize(text)?).map_err(serde::de::Error::custom)
}

/// Reads an optional run id.
pub(super) fn optional_run_id<'de, D: Deserializer<'de>>(text: D) -> Result<Option<RunId>, D::Error> {
    run_id(text).map(Some)
}

/// The parameters of a path.
pub(super) struct InPath<T>(pub(super) T);

/// The parameters of a query.
pub(super) struct InQuery<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for InPath<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::from_request_parts(parts, state).await;
        read.map(|Path(value)| Self(value)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for InQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::from_request_parts(parts, state).await;
        read.map(|Query(value)| Self(value)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}
