//! Checks parts of Claude's records beyond the kinds of their fields.

use std::borrow::Cow;
use std::collections::HashSet;

use super::frames::{ResultMeta, StreamFrame};
use super::wire::{Line, Permission};
use crate::emit::Emit;
use crate::shapes::{is_absent, is_list, is_object, is_text};
use crate::wire::{Raw, RawField as _, WireObject as _};

/// Tells whether a line has a field that was ignored because of its kind.
pub(super) fn is_odd_line(line: &Line<'_>, emit: &Emit<'_>) -> bool {
    line.is_odd()
        || is_odd_time(line.timestamp, emit)
        || line.origin.is_some_and(|origin| is_absent(origin.kind))
        || line.forked_from.is_some_and(|from| is_absent(from.session_id))
        || line.permission.is_some_and(is_odd_permission)
}

/// Tells whether a frame has a field that was ignored because of its kind.
pub(super) fn is_odd_frame(frame: &StreamFrame<'_>, emit: &Emit<'_>) -> bool {
    frame.is_odd() || is_odd_time(frame.timestamp, emit)
}

fn is_odd_time(timestamp: Raw<'_>, emit: &Emit<'_>) -> bool {
    emit.is_time_inferred() && timestamp.text().is_some()
}

fn is_odd_permission(permission: Permission<'_>) -> bool {
    !["accept", "reject"].iter().any(|decision| permission.decision.is(decision))
}

/// Tells whether the fields next to results match none of them, or cannot be read.
pub(super) fn is_odd_meta(meta: Option<ResultMeta<'_>>, results: &HashSet<Cow<'_, str>>) -> bool {
    meta.is_none_or(|meta| {
        let is_of_result = meta.id.text().is_some_and(|id| results.contains(&id));
        meta.is_odd() || !is_of_result || meta.permission.is_some_and(is_odd_permission)
    })
}

/// Tells whether a tool's report is not an object, or has no result.
pub(super) fn is_odd_report(report: Raw<'_>, results: usize) -> bool {
    let is_report = is_object(report) || is_text(report) || is_list(report);
    !is_report || (results == 0 && report.json().is_some())
}
