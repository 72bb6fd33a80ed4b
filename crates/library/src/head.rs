//! What the first event of a run says of it.

use serde_json::Value;
use steno_journal::{Error as JournalError, Store, run_beginning};
use steno_model::{Evidence, ExchangeEvent, RunId, Timestamp};
use steno_vault::SourceId;
use steno_views::summary::RunSummary;

use crate::Error;

/// What the first event of a run says of it. Of a run without events, or a damaged one, nothing is known but its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// The run.
    pub run: RunId,
    /// The run that began it.
    pub parent: Option<RunId>,
    /// The session that it records from outside.
    pub session: Option<RunId>,
    /// The source in the vault that it was made from.
    pub source: Option<SourceId>,
    /// Whose agent it was.
    pub provider: Option<String>,
    /// On which channel it was recorded: `disk` for an agent's own file.
    pub channel: Option<String>,
    /// The adapter that made it, with its version.
    pub adapter: Option<String>,
    /// The directory that the agent worked in.
    pub project: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
}

impl RunHead {
    /// Reads the first event of a run.
    #[must_use]
    pub fn of(first: &ExchangeEvent) -> Self {
        let summary = RunSummary::from_ends(first, first);
        let payload: Value = serde_json::from_str(first.payload.as_str()).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            run: first.run_id,
            parent: summary.parent_run_id,
            session: summary.session_run_id.filter(|session| *session != first.run_id),
            source: source_of(first),
            provider: summary.provider.map(|provider| provider.to_text().into_owned()),
            channel: text(&payload["source"]["channel"]),
            adapter: text(&payload["source"]["adapter"]),
            project: text(&payload["cwd"]),
            started: Some(first.timestamp.clone()),
        }
    }

    /// Returns what is known of a run that cannot be read.
    #[must_use]
    pub fn unknown(run: RunId) -> Self {
        Self {
            run,
            parent: None,
            session: None,
            source: None,
            provider: None,
            channel: None,
            adapter: None,
            project: None,
            started: None,
        }
    }

    /// Reads the head of a run of a store; `None` when the store does not have it any more.
    pub(crate) fn read(store: &Store, run: RunId) -> Result<Option<Self>, Error> {
        match run_beginning(store, run, 1) {
            Ok(events) => Ok(Some(match events.first().filter(|first| first.run_id == run) {
                Some(first) => Self::of(first),
                None => Self::unknown(run),
            })),
            Err(JournalError::NoSuchRun { .. }) => Ok(None),
            // `steno verify` names it.
            Err(
                JournalError::Damaged { .. } | JournalError::Shrunk { .. } | JournalError::NotRegular { .. },
            ) => Ok(Some(Self::unknown(run))),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells whether it is an agent's own session file, and not what was seen of a session elsewhere.
    #[must_use]
    pub fn is_own_file(&self) -> bool {
        self.session.is_none() && self.channel.as_deref() == Some("disk")
    }
}

/// Returns the source that an event was made from, if any.
#[must_use]
pub fn source_of(event: &ExchangeEvent) -> Option<SourceId> {
    let evidence = event.extra.get("evidence").and_then(Evidence::read)?;
    SourceId::parse(&evidence.source.to_text())
}
