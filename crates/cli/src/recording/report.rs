//! The report of a pass: what the store has, and what the pass added, as text and as JSON.

use std::collections::BTreeMap;

use serde_json::json;
use steno_disk::StorePath;
use steno_journal::Store;
use steno_library::Library;
use steno_recorder::sources::{RecordingCounts, RederiveReport, SourceListing};
use steno_vault::{Outlines, Role, Vault};
use steno_views::{count, thousands};

use super::rederive;
use crate::failure::Failure;
use crate::output::{Output, joined_lines, size};

/// What the store has after a pass.
pub struct Report {
    pub health: RecordingCounts,
    pub excluded: u64,
    /// Files whose project is not known while projects are excluded.
    pub of_unknown_projects: u64,
    /// Sessions by the provider's name.
    pub sessions: BTreeMap<String, u64>,
    /// Files of unknown agents.
    pub strange: u64,
    pub source_bytes: u64,
    /// The size of the evidence on disk.
    pub kept_bytes: u64,
    /// The size of the transcripts on disk, with their seals and notes.
    pub transcript_bytes: u64,
    /// When the oldest session began.
    pub oldest: Option<String>,
    /// What was derived again.
    pub rederived: RederiveReport,
}

impl Report {
    /// Adds up what the store has. Sessions are counted as `steno ls` lists them.
    pub fn of(
        store: &Store,
        vault: &Vault,
        mut outlines: Outlines,
        listing: &SourceListing,
        health: RecordingCounts,
    ) -> Result<Self, Failure> {
        if let Some(error) = outlines.unreadable.pop() {
            return Err(error.1.into());
        }
        let sessions = Library::new(Some(store.clone())).session_counts(&outlines)?;
        let source_bytes = vault.source_bytes(&outlines)?;
        let (mut strange, mut oldest) = (0, None::<String>);
        for outline in outlines.sources {
            if outline.info.role == Role::Transcript {
                // Recordings of MCP and HTTP have an adapter, but no one agent.
                if outline.info.provider.is_none() && outline.adapted.is_none() {
                    strange += 1;
                    continue;
                }
                let started = outline.adapted.and_then(|adapted| adapted.started);
                let is_older = |started: &String| oldest.as_ref().is_none_or(|oldest| started < oldest);
                if let Some(started) = started.filter(is_older) {
                    oldest = Some(started);
                }
            }
        }
        Ok(Self {
            health,
            excluded: listing.excluded,
            of_unknown_projects: listing.of_unknown_projects,
            sessions,
            strange,
            source_bytes,
            kept_bytes: vault.disk_bytes()?,
            transcript_bytes: store.disk().size_of_files(&StorePath::transcripts())?,
            oldest,
            rederived: RederiveReport::default(),
        })
    }

    /// Adds what was derived again.
    pub fn with(self, rederived: RederiveReport) -> Self {
        Self { rederived, ..self }
    }

    pub fn print(&self, output: &mut Output, as_json: bool) {
        if as_json {
            output.json_line(&self.to_json());
            return;
        }
        let total: u64 = self.sessions.values().sum();
        let oldest = self.oldest.as_deref().and_then(|time| time.get(..10));
        let by: Vec<String> =
            self.sessions.iter().map(|(name, count)| format!("{} {name}", thousands(*count))).collect();
        let health = &self.health;
        output.line(&format!(
            "{} of {} new or changed: {} read, {} recorded",
            thousands(health.files_new),
            count(health.files, "file"),
            size(health.bytes_read),
            count(health.events, "event"),
        ));
        for (files, what) in [
            (self.excluded, "excluded"),
            (self.of_unknown_projects, "`exclude_projects` is set, and the project is not known"),
            (health.files_forgotten, "forgotten or skipped before"),
            (health.files_held, "recorded by another `steno`"),
        ] {
            if files > 0 {
                output.line(&format!("{} not archived: {what}", count(files, "file")));
            }
        }
        if health.pieces_left_out > 0 {
            let lines = count(health.pieces_left_out, "line");
            output.line(&format!("{lines} of shared files left out: the sessions are excluded or forgotten"));
        }
        if health.records_unreadable > 0 {
            output.line(&format!("{} could not be parsed", count(health.records_unreadable, "record")));
        }
        if self.strange > 0 {
            output.line(&format!("{} of unknown agents, kept as evidence", count(self.strange, "file")));
        }
        for line in rederive::report_lines(&self.rederived) {
            output.line(&line);
        }
        let sessions = format!(
            "in the store: {}{}{}",
            count(total, "session"),
            if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) },
            oldest.map_or(String::new(), |day| format!(", the oldest from {day}")),
        );
        let sizes = format!(
            "size {}: {} of files stored in {}, transcripts {}",
            size(self.kept_bytes + self.transcript_bytes),
            size(self.source_bytes),
            size(self.kept_bytes),
            size(self.transcript_bytes),
        );
        for line in joined_lines(&[sessions, sizes], "; ", output.width()) {
            output.line(&line);
        }
    }

    fn to_json(&self) -> String {
        let health = &self.health;
        json!({
            "files": health.files,
            "files_new": health.files_new,
            "files_held": health.files_held,
            "files_failed": health.files_failed,
            "files_unread": health.files_unread,
            "files_forgotten": health.files_forgotten,
            "files_excluded": self.excluded,
            "files_of_unknown_projects": self.of_unknown_projects,
            "lines_left_out": health.pieces_left_out,
            "bytes_read": health.bytes_read,
            "events": health.events,
            "events_refused": health.events_refused,
            "records_unknown": health.records_unknown,
            "records_unreadable": health.records_unreadable,
            "sessions": self.sessions,
            "files_of_no_agent": self.strange,
            "source_bytes": self.source_bytes,
            "kept_bytes": self.kept_bytes,
            "transcript_bytes": self.transcript_bytes,
            "oldest": self.oldest,
            "runs_rederived": self.rederived.runs + self.rederived.runs_new,
        })
        .to_string()
    }
}
