//! Reads a spine: the session, and the facts that its tasks need.

use steno_exports::harbor::{Session, SessionBuilder};
use steno_library::{SpineItem, SpineTarget};
use steno_model::ThreadId;
use steno_spine::Artifacts;

use crate::failure::Failure;

/// A session, and the facts that its tasks need.
pub struct TaskSession {
    pub session: Session,
    pub artifacts: Artifacts,
    /// The SHA-256 of each sealed segment.
    pub segments: Vec<String>,
}

impl TaskSession {
    /// Reads a valid spine.
    pub fn read(target: &SpineTarget) -> Result<Self, Failure> {
        let name = target.name();
        let report = target.validate()?;
        if !report.is_valid() {
            let failure = Failure::nothing(format!("the spine in `{name}` is not valid"));
            return Err(failure.with_hint(format!("`steno spine validate {name}` says why")));
        }
        let thread = report.thread.as_deref().and_then(|thread| ThreadId::parse(thread).ok());
        let thread = thread.ok_or_else(|| Failure::nothing(format!("`{name}` has no records")))?;
        let mut builder = SessionBuilder::new(thread);
        let artifacts = target.read(&report, &mut |item| match item {
            SpineItem::Record(record) => builder.record(&record),
            SpineItem::Event(event, seq) => builder.event(event, seq),
        })?;
        let segments = report.sealed_sha256().map(str::to_owned).collect();
        Ok(Self { session: builder.finish(), artifacts, segments })
    }
}
