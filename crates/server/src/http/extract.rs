//! What requests say, read so that what cannot be read is a problem like any other.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::Problem;

/// The parameters of a path.
pub(super) struct InPath<T>(pub(super) T);

/// The parameters after the question mark.
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
