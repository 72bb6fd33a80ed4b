//! Errors as problem details (RFC 9457).

use std::io::ErrorKind;
use steno_model::with_causes;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use steno_journal::Error as JournalError;
use steno_library::Error as LibraryError;
use utoipa::ToSchema;

use crate::receipts;

/// The media type of problems.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// The problem details of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// The kind: `urn:steno:problem:` and a word.
    #[serde(rename = "type")]
    pub kind: String,
    /// A short description of the kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened in this case.
    pub detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        let kind = format!("urn:steno:problem:{kind}");
        Self { kind, title: title.to_owned(), status: status.as_u16(), detail: detail.into() }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "Bad request", detail)
    }

    pub(super) fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "The token is missing or wrong", detail)
    }

    pub(super) fn forbidden(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "The request is not allowed", detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "Conflict", detail)
    }

    pub(super) fn too_much(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too-much", "The server is busy", detail)
    }

    fn no_room(detail: String) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "no-room", "The disk is full", detail)
    }

    pub(super) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        let detail = with_causes(&error);
        match error {
            JournalError::NoSuchRun { .. } => Self::not_found(detail),
            JournalError::Locked { .. } => Self::conflict("another process is recording this run"),
            JournalError::Damaged { .. } | JournalError::SealBroken { .. } => Self::conflict(detail),
            JournalError::NoRoom { .. } => Self::no_room(detail),
            JournalError::Paused => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "paused",
                "Recording is paused",
                "run `steno resume` to continue recording",
            ),
            JournalError::TooLong { .. }
            | JournalError::Poisoned { .. }
            | JournalError::Vanished { .. }
            | JournalError::Changed { .. }
            | JournalError::Closed
            | JournalError::NotRegular { .. }
            | JournalError::NotAStore { .. }
            | JournalError::StoreTooNew { .. }
            | JournalError::BadFormatFile { .. }
            | JournalError::Shrunk { .. } => Self::internal(detail),
            JournalError::Io { source, .. } => {
                let is_full = matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                if is_full { Self::no_room(detail) } else { Self::internal(detail) }
            }
        }
    }
}

impl From<LibraryError> for Problem {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Journal(error) => error.into(),
            LibraryError::Ambiguous { ref candidates, .. } => {
                let ids: Vec<&str> = candidates.iter().map(|candidate| candidate.id.as_str()).collect();
                Self::conflict(format!("{error}: {}", ids.join(", ")))
            }
            error @ (LibraryError::NotFound { .. }
            | LibraryError::LastOutOfRange { .. }
            | LibraryError::WithoutEvents { .. }
            | LibraryError::NoStore) => Self::not_found(error.to_string()),
            error @ (LibraryError::InvalidName { .. }
            | LibraryError::NoFile { .. }
            | LibraryError::File(_)
            | LibraryError::Pattern(_)
            | LibraryError::NotRegular { .. }) => Self::bad_request(error.to_string()),
            LibraryError::Vault(error) => Self::internal(with_causes(&error)),
            LibraryError::Index(error) => Self::internal(with_causes(&error)),
        }
    }
}

impl From<receipts::Error> for Problem {
    fn from(error: receipts::Error) -> Self {
        match error {
            receipts::Error::Journal(error) => error.into(),
            receipts::Error::Library(error) => error.into(),
            error @ receipts::Error::NoSuchTurn { .. } => Self::not_found(error.to_string()),
            error @ receipts::Error::Ambiguous { .. } => Self::conflict(error.to_string()),
            error @ (receipts::Error::Mismatch(_)
            | receipts::Error::NoReceipt(_)
            | receipts::Error::Differs(_)
            | receipts::Error::OtherBytes
            | receipts::Error::Lines(_)
            | receipts::Error::NoIntegrity
            | receipts::Error::NotGiven { .. }
            | receipts::Error::Records { .. }) => Self::internal(error.to_string()),
        }
    }
}
